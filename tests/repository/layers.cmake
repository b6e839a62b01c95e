# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=INCLUDE_FOLDER -P layers.cmake
#
# Fails if a header under INCLUDE_FOLDER/hocket includes a header of a later layer, of a circle, for users, or reserved for
# other folders; and if a workaround lacks its version, symptom or test. Prints each offence as FILE: text.

cmake_minimum_required(VERSION 3.25)

# The folders under hocket/. Each is a layer: it may include itself and the layers above it in this list, so that no two
# can include each other. Folders detail/ and impl/ belong to their parent folder. Headers in hocket/ itself and in
# hocket/impl/ are for users: they may include everything, and no other header may include one of them. A header may
# include impl/<its name>.ipp, its definitions, at its end: that is not a circle.
set(layers
    "core"
    "core/platform"
    "scalar"
    "operation"
    "plan"
    "plan/collective"
    "schedule"
    "schedule/lower"
    "draw"
    "bootstrap"
    "transport"
    "transport/adaptor"
    "transport/host"
    "transport/local"
    "transport/sim"
    "transport/ucx/workarounds"
    "transport/ucx"
    "transport/cuda_ipc"
    "communicator"
    "kernel/host"
    "kernel/device"
    "engine"
    "engine/stream"
    "selection"
    "collective/host"
    "collective/device"
    "collective"
    "group"
    "mesh"
    "shard"
    "shard/layer"
    "pipeline"
    "gradient"
    "optimizer/rule"
    "optimizer"
    "observe"
    "data"
    "data/remote"
    "data/cache"
    "checkpoint"
    "train"
)

# Headers of other libraries that only some folders may include: a pattern of names, the folders, the reason.
set(reserved_names "")
set(reserved_folders "")
set(reserved_reasons "")
macro(reserve names folders reason)
  list(APPEND reserved_names "${names}")
  list(APPEND reserved_folders "${folders}")
  list(APPEND reserved_reasons "${reason}")
endmacro()
reserve("^uc[pstm]/" "^transport/ucx/" "only transport/ucx may use UCX")
reserve("^(cuda|cub/|thrust/|cooperative_groups)" "^transport/cuda_ipc/|[.]cuh$" "only transport/cuda_ipc and .cuh files may use CUDA")
reserve("^nvtx3/" "^group/nvtx[.]hpp$" "only group/nvtx.hpp may use NVTX")
reserve("^prometheus/" "^observe/prometheus[.]hpp$" "only observe/prometheus.hpp may use prometheus-cpp")
reserve("^curl/" "^data/remote/curl[.]hpp$" "only data/remote/curl.hpp may use libcurl")
reserve("^archive(_entry)?[.]h$" "^data/archive[.]hpp$" "only data/archive.hpp may use libarchive")
reserve("^(iostream|format)$" "^$" "it is too slow to compile for a library header")
reserve("^(sys|linux|arpa|net|netinet)/|^(unistd|pthread|sched|fcntl|poll|signal|dlfcn|netdb|ifaddrs|spawn|semaphore|dirent|termios|syslog|time|locale)[.]h$"
        "^(core/platform|bootstrap|transport)/" "only core/platform, bootstrap and transport may use system headers")

cmake_path(ABSOLUTE_PATH root)
set(offences 0)
function(offence file text)
  message("${file}: ${text}")
  math(EXPR count "${offences} + 1")
  set(offences ${count} PARENT_SCOPE)
endfunction()

set(number 0)
foreach(folder IN LISTS layers)
  set("layer_of_${folder}" ${number})
  math(EXPR number "${number} + 1")
endforeach()

# Sets `result` to the folder of `header` that must be in the list.
function(folder_of result header)
  cmake_path(GET header PARENT_PATH folder)
  string(REGEX REPLACE "/(detail|impl)$" "" folder "${folder}")
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

# Sets `result` to the names that `header` includes. Includes must be written in one way, because others could hide the
# included file.
function(includes_in result header)
  file(READ "${root}/hocket/${header}" text)
  string(REGEX REPLACE "[][;]" " " text "${text}") # which have a meaning in lists
  string(REGEX MATCHALL "[^\n]*#[ \t]*(include|import)[^\n]*" lines "${text}")
  set(names "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^[ \t]*#[ \t]*include[ \t]*<([^>]+)>")
      set(name "${CMAKE_MATCH_1}")
      if(name MATCHES "(^|/)[.]?[.]?/")
        offence("${header}" "includes <${name}>: write the path without \"//\", \"./\" and \"../\"")
      else()
        list(APPEND names "${name}")
      endif()
    elseif(NOT line MATCHES "^[ \t]*//")
      offence("${header}" "write #include <name>, alone on its line: ${line}")
    endif()
  endforeach()
  set(offences ${offences} PARENT_SCOPE)
  set(${result} "${names}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE "${root}" "${root}/*")
set(headers "")
foreach(file IN LISTS files)
  if(file MATCHES "^hocket/(.*[.](hpp|ipp|cuh))$")
    list(APPEND headers "${CMAKE_MATCH_1}")
  else()
    offence("${file}" "is not a header of hocket: only hocket/*.hpp, *.ipp and *.cuh are")
  endif()
endforeach()
if(NOT headers)
  message(FATAL_ERROR "no headers under ${root}/hocket")
endif()

foreach(header IN LISTS headers)
  folder_of(folder "${header}")
  set(is_for_users FALSE)
  if(folder MATCHES "^(impl)?$")
    set(is_for_users TRUE)
  elseif(NOT DEFINED "layer_of_${folder}")
    offence("${header}" "the folder ${folder}/ is not a layer: add it to tests/repository/layers.cmake")
    continue()
  endif()
  if(folder MATCHES "/workarounds$")
    file(READ "${root}/hocket/${header}" text)
    if(NOT text MATCHES "\n/// Version: .*\n/// Symptom: .*\n/// Test: ")
      offence("${header}" "the first comment of a workaround must contain \"Version:\", \"Symptom:\" and \"Test:\", in this order")
    endif()
  endif()

  includes_in(includes "${header}")
  foreach(included IN LISTS includes)
    if(NOT included MATCHES "^hocket/(.*)$")
      set(is_known FALSE)
      foreach(names folders reason IN ZIP_LISTS reserved_names reserved_folders reserved_reasons)
        if(included MATCHES "${names}")
          set(is_known TRUE)
          if(NOT header MATCHES "${folders}")
            offence("${header}" "includes <${included}>: ${reason}")
          endif()
        endif()
      endforeach()
      if(included MATCHES "[/.]" AND NOT is_known)
        offence("${header}" "includes <${included}>, which belongs neither to the standard library nor to Linux, UCX, CUDA, prometheus-cpp, libcurl or libarchive")
      endif()
      continue()
    endif()

    set(target "${CMAKE_MATCH_1}")
    cmake_path(GET header STEM stem)
    if(NOT target STREQUAL "${folder}/impl/${stem}.ipp")
      list(APPEND includes_of_${header} "${target}")
    endif()
    if(NOT EXISTS "${root}/hocket/${target}")
      offence("${header}" "includes <${included}>, which does not exist")
    elseif(header MATCHES "\\.[hi]pp$" AND target MATCHES "\\.cuh$")
      offence("${header}" "includes <${included}>: a .hpp must compile without nvcc")
    endif()
    if(is_for_users)
      continue()
    endif()
    folder_of(target_folder "${target}")
    if(target_folder MATCHES "^(impl)?$")
      offence("${header}" "includes <${included}>, which is for users: include the headers that it includes")
    elseif(DEFINED "layer_of_${target_folder}" AND "${layer_of_${target_folder}}" GREATER "${layer_of_${folder}}")
      offence("${header}" "includes <${included}>: ${target_folder}/ is a later layer than ${folder}/")
    endif()
  endforeach()
endforeach()

# Circles: removes headers that include none of the remaining ones, until nothing changes. The rest is in a circle, or
# includes one.
set(left ${headers})
set(count_before -1)
list(LENGTH left count)
while(NOT count EQUAL count_before)
  set(count_before ${count})
  foreach(header IN LISTS left)
    set(waits FALSE)
    foreach(target IN LISTS includes_of_${header})
      if(target IN_LIST left)
        set(waits TRUE)
        break()
      endif()
    endforeach()
    if(NOT waits)
      list(REMOVE_ITEM left "${header}")
    endif()
  endforeach()
  list(LENGTH left count)
endwhile()
foreach(header IN LISTS left)
  offence("${header}" "is part of, or includes, a circle of includes")
endforeach()

if(offences)
  message(FATAL_ERROR "${offences} offences against the layers")
endif()
