# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D scratch=FOLDER -P layers_can_fail.cmake
#
# Runs layers.cmake on a small tree for each offence, and on one without: it must distinguish them, and name each.

cmake_minimum_required(VERSION 3.25)

# Writes the header `name` with the given includes into the current tree.
function(header name)
  set(text "#pragma once\n")
  foreach(include IN LISTS ARGN)
    string(APPEND text "#include ${include}\n")
  endforeach()
  file(WRITE "${scratch}/hocket/${name}" "${text}")
endfunction()

# Checks the tree that was written since the last call: layers.cmake must print `expectation`, or succeed if that is
# empty.
function(check expectation)
  execute_process(COMMAND "${CMAKE_COMMAND}" -D "root=${scratch}" -P "${CMAKE_CURRENT_LIST_DIR}/layers.cmake"
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(expectation STREQUAL "" AND NOT status EQUAL 0)
    message(SEND_ERROR "a good tree was rejected:\n${output}")
  elseif(NOT expectation STREQUAL "" AND (status EQUAL 0 OR NOT output MATCHES "${expectation}"))
    message(SEND_ERROR "not found: ${expectation}\n${output}")
  endif()
  file(REMOVE_RECURSE "${scratch}/hocket")
endfunction()

file(REMOVE_RECURSE "${scratch}/hocket")

header(core/platform/futex.hpp <linux/futex.h> <unistd.h>)
header(core/error.hpp <vector>)
header(plan/plan.hpp <hocket/core/error.hpp>)
header(transport/ucx/workarounds/version.hpp <ucp/api/ucp.h>)
file(APPEND "${scratch}/hocket/transport/ucx/workarounds/version.hpp" "\n/// Version: 1.\n/// Symptom: a.\n/// Test: b.\n")
header(plan/detail/table.hpp <hocket/plan/plan.hpp>)
header(transport/ucx/worker.hpp <hocket/transport/ucx/workarounds/version.hpp> <ucp/api/ucp.h> <hocket/plan/detail/table.hpp>
       <hocket/core/platform/futex.hpp>)
header(collective/all_reduce.hpp <hocket/engine/machine.hpp> <hocket/plan/plan.hpp>)
header(engine/machine.hpp <hocket/plan/plan.hpp>)
header(collective/all_reduce.cuh <cuda_runtime.h> <hocket/collective/all_reduce.hpp>)
header(hocket.hpp <hocket/collective/all_reduce.hpp>)
header(ucx.hpp <hocket/hocket.hpp> <hocket/transport/ucx/worker.hpp>)
check("")

header(core/error.hpp <hocket/plan/plan.hpp>)
header(plan/plan.hpp)
check("core/error.hpp: .*plan/ is a later layer than core/")

header(core/error.hpp <hocket/scalar/half.hpp>)
header(scalar/half.hpp)
check("core/error.hpp: .*scalar/ is a later layer than core/")

header(transport/local/domain.hpp <hocket/engine/machine.hpp>)
header(engine/machine.hpp)
check("transport/local/domain.hpp: .*engine/ is a later layer than transport/")

# Two folders that include each other, without a circle of headers.
header(engine/machine.hpp <hocket/communicator/state.hpp>)
header(communicator/state.hpp)
header(communicator/split.hpp <hocket/engine/drive.hpp>)
header(engine/drive.hpp)
check("communicator/split.hpp: .*engine/ is a later layer than communicator/")

header(transport/ucx/domain.hpp <hocket/transport/cuda_ipc/group.hpp>)
header(transport/cuda_ipc/group.hpp)
check("transport/ucx/domain.hpp: .*transport/cuda_ipc/ is a later layer than transport/ucx/")

header(transport/ucx/workarounds/version.hpp)
check("workarounds/version.hpp: the first comment of a workaround must")

header(plan/a.hpp <hocket/plan/b.hpp>)
header(plan/b.hpp <hocket/plan/c.hpp>)
header(plan/c.hpp <hocket/plan/a.hpp>)
header(plan/innocent.hpp)
check("plan/a.hpp: [^\n]*circle.*plan/c.hpp: [^\n]*circle[^\n]*\n.*3 offences")

header(engine/machine.hpp <hocket/hocket.hpp>)
header(hocket.hpp)
check("engine/machine.hpp: .*which is for users")

header(engine/machine.hpp <ucp/api/ucp.h>)
check("engine/machine.hpp: .*only transport/ucx may use UCX")

header(engine/machine.hpp <cuda_runtime.h>)
check("engine/machine.hpp: .*may use CUDA")

header(engine/machine.hpp <sys/mman.h>)
check("engine/machine.hpp: .*may use system headers")

header(core/json.hpp <boost/json.hpp>)
check("core/json.hpp: .*neither to the standard library")

header(engine/machine.hpp <iostream>)
check("engine/machine.hpp: .*too slow to compile")

header(kernel/host/copy.hpp <hocket/kernel/host/copy.cuh>)
header(kernel/host/copy.cuh)
check("kernel/host/copy.hpp: .*without nvcc")

header(plan/plan.hpp <hocket/plan/missing.hpp>)
check("plan/plan.hpp: .*does not exist")

# Nested folders.
header(schedule/greedy.hpp <hocket/schedule/lower/lower.hpp>)
header(schedule/lower/lower.hpp)
check("schedule/greedy.hpp: .*schedule/lower/ is a later layer than schedule/")

header(collective/host/run.hpp <hocket/collective/device/memory.hpp>)
header(collective/device/memory.hpp <hocket/collective/detail/misuse.hpp>)
header(collective/detail/misuse.hpp)
check("collective/device/memory.hpp: .*collective/ is a later layer.*collective/host/run.hpp: .*collective/device/ is a later")

# Includes that are written in ways that could hide the included file.
foreach(include IN ITEMS "\"other.hpp\"" "OTHER_HEADER" "<hocket/plan/../core/error.hpp>" "<hocket//core/error.hpp>"
                         "<./hocket/core/error.hpp>")
  header(core/error.hpp)
  header(plan/plan.hpp "${include}")
  check("plan/plan.hpp: (write #include|[^\n]*write the path without)")
endforeach()
foreach(line IN ITEMS "#import <hocket/core/error.hpp>" "/* first */ #include <hocket/core/error.hpp>")
  file(WRITE "${scratch}/hocket/plan/plan.hpp" "#pragma once\n${line}\n")
  check("plan/plan.hpp: write #include")
endforeach()
file(WRITE "${scratch}/hocket/core/error.hpp" "#include <vector>  // for [\n#  include<hocket/plan/plan.hpp>\n")
header(plan/plan.hpp)
check("core/error.hpp: .*plan/ is a later layer than core/")

# Definitions.
header(plan/plan.hpp <hocket/plan/impl/plan.ipp>)
header(plan/impl/plan.ipp <hocket/plan/plan.hpp> <hocket/engine/machine.hpp>)
header(engine/machine.hpp)
check("plan/impl/plan.ipp: .*engine/ is a later layer than plan/")

header(plan/impl/plan.ipp <hocket/plan/impl/price.ipp>)
header(plan/impl/price.ipp <hocket/plan/plan.hpp> <hocket/plan/impl/plan.ipp>)
check("plan/impl/pl[a-z]*.ipp: is part of, or includes, a circle")

header(plan/plan.hpp <hocket/impl/src.hpp>)
header(plan/impl/plan.ipp)
header(plan/impl/price.ipp)
header(impl/src.hpp)
check("plan/plan.hpp: .*is for users")

header(plan/plan.hpp)
file(WRITE "${scratch}/hocket/plan/plan.inl" "")
check("hocket/plan/plan.inl: is not a header")

header(misc/helper.hpp)
check("misc/helper.hpp: the folder misc/ is not a layer")

header(plan/misc/helper.hpp)
check("plan/misc/helper.hpp: the folder plan/misc/ is not a layer")

check("no headers under")
