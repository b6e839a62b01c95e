# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D program=HOCKET_PERF -D scratch=FOLDER -P constants.cmake
#
# Writes measured costs of links to a file, by which processes then choose algorithms. Other programs on the cores
# disturb the measurement, so it is repeated.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${scratch}")
file(MAKE_DIRECTORY "${scratch}")

# Runs the program with ARGN; sets `status`, and `output` to what it writes to stdout and stderr.
macro(run)
  execute_process(COMMAND "${program}" ${ARGN} WORKING_DIRECTORY "${scratch}" RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
endmacro()

# Fails unless the last run exited with `expected` and its output matches `expression`.
function(expect expected expression)
  if(NOT status EQUAL expected OR NOT output MATCHES "${expression}")
    message(FATAL_ERROR "exit status ${status}, expected ${expected} and ${expression} in:\n${output}")
  endif()
endfunction()

set(use -p 2 --explain -b 1K -e 1K -n 2 -w 1)

# ---- what can't be measured -----------------------------------------------------------------------------------------
run(--constants none.txt -p 1)
expect(1 "^hocket-perf: --constants: the costs could not be measured, so 'none.txt' was not written: that needs at least 2")
if(EXISTS "${scratch}/none.txt")
  message(FATAL_ERROR "none.txt was written")
endif()
run(--constants costs.txt -t 2)
expect(2 "--constants: measures no collective, so --threads would have no effect")
execute_process(COMMAND "${program}" --constants "" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
expect(2 "--constants: must be the name of a file")
set(ENV{HOCKET_CONSTANTS} none.txt)
run(${use})
expect(1 "HOCKET_CONSTANTS=none.txt: No such file or directory; .*`hocket-perf --constants FILE` writes")

# ---- a file, and its use; the present value of the variable has no influence on what is written ------------------------
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
set(attempts 50)
foreach(attempt RANGE 1 ${attempts})
  run(--constants costs.txt -p 2)
  if(status EQUAL 0)
    break()
  endif()
  expect(1 "--constants: the costs could not be measured")
endforeach()
if(NOT status EQUAL 0)
  message("skipped: no cores were free for a measurement, in ${attempts} attempts on ${cores} cores")
  return()
endif()
expect(0 "^costs of links, written to costs.txt: message [0-9].*us/KiB\n$")
file(READ "${scratch}/costs.txt" costs)
if(NOT costs MATCHES "^# Costs of links between 2 processes of one host.*\nmessage_latency = [0-9.e-]+\n.*\neager_bytes = [0-9]+\n$")
  message(FATAL_ERROR "costs.txt has:\n${costs}")
endif()
string(REGEX REPLACE "^costs of links, written to costs.txt: ([^\n]*)\n$" "\\1" description "${output}")
set(ENV{HOCKET_CONSTANTS} costs.txt)
run(${use})
expect(0 "costs from the file of HOCKET_CONSTANTS")
string(FIND "${output}" "${description}" found)
if(found EQUAL -1)
  message(FATAL_ERROR "the output has other costs than ${description}:\n${output}")
endif()

# ---- a file that can't be written -----------------------------------------------------------------------------------
foreach(attempt RANGE 1 ${attempts})
  run(--constants nowhere/costs.txt -p 2)
  if(NOT output MATCHES "could not be measured")
    expect(1 "--constants: cannot write 'nowhere/costs.txt': No such file or directory")
    break()
  endif()
endforeach()
