# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=REPOSITORY -D compiler=COMPILER -D objdump=OBJDUMP -D scratch=FOLDER -P zero_cost_can_fail.cmake
#
# Adds five run-time costs to sharded tensors: zero_cost.cmake must detect each of them.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${scratch}")

# Writes `header` below `scratch`, with `slow` in place of `fast`.
function(pessimise header fast slow)
  set(mutant "${scratch}/hocket/shard/${header}")
  if(NOT EXISTS "${mutant}")
    file(COPY_FILE "${root}/include/hocket/shard/${header}" "${mutant}")
  endif()
  file(READ "${mutant}" text)
  string(REPLACE "${fast}" "${slow}" mutated "${text}")
  if(mutated STREQUAL text)
    message(FATAL_ERROR "${header} has no ${fast}")
  endif()
  file(WRITE "${mutant}" "${mutated}")
endfunction()

file(MAKE_DIRECTORY "${scratch}/hocket/shard")
pessimise(tensor.hpp "mesh_(std::move(other.mesh_))" "mesh_(other.mesh_)") # increments and decrements a reference count
pessimise(tensor.hpp "(known[D] == dynamic ? part_.value.size[D] : known[D])" "part_.value.size[D]") # reads a known extent
pessimise(convert.hpp "To to = To::unwritten(mesh()" "To to = To::of_sizes(mesh()") # writes zeros that are overwritten
pessimise(array_view.hpp "++d) offset" "++d) if (indices[d] < sizes_[d]) offset") # compares each index
pessimise(convert.hpp "    all_reduce(comm, hocket::in_place" # an additional message
          "    all_reduce(comm, hocket::in_place(tensor.elements()));\n    all_reduce(comm, hocket::in_place")

execute_process(
  COMMAND "${CMAKE_COMMAND}" -D "root=${root}" -D "compiler=${compiler}" -D "objdump=${objdump}" -D "headers=${scratch}"
          -D "scratch=${scratch}/compared" -P "${CMAKE_CURRENT_LIST_DIR}/zero_cost.cmake"
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output
)
if(status EQUAL 0)
  message(SEND_ERROR "no difference was found:\n${output}")
endif()
foreach(name IN ITEMS use add_later redistribute reduce gather scatter element unknown_element total rows stride volume)
  if(NOT output MATCHES "(^|\n)${name} differs: ")
    message(SEND_ERROR "not found: ${name}\n${output}")
  endif()
endforeach()
