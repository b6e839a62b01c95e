# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D program=HOCKET_PERF -D scratch=FOLDER -P formats.cmake
#
# Reads the output of the program in each format, as a script does, and compares results with it.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${scratch}")
file(MAKE_DIRECTORY "${scratch}")

# Runs the program with ARGN; sets `output` and `errors`. Fails unless it exits with `expected`.
function(run expected)
  execute_process(COMMAND "${program}" ${ARGN} WORKING_DIRECTORY "${scratch}" RESULT_VARIABLE status OUTPUT_VARIABLE text
                  ERROR_VARIABLE problems)
  if(NOT status EQUAL expected)
    message(FATAL_ERROR "hocket-perf ${ARGN}: exit status ${status}, expected ${expected}\n${text}\n${problems}")
  endif()
  set(output "${text}" PARENT_SCOPE)
  set(errors "${problems}" PARENT_SCOPE)
endfunction()

function(expect_match text expression)
  if(NOT text MATCHES "${expression}")
    message(FATAL_ERROR "expected ${expression} in:\n${text}")
  endif()
endfunction()

# Sets `result` to the lines of `text` that match `expression`; a semicolon within a line becomes a space.
function(lines_matching result text expression)
  string(REPLACE ";" " " text "${text}")
  string(REPLACE "\n" ";" lines "${text}")
  list(FILTER lines INCLUDE REGEX "${expression}")
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()

set(all -t 2 --collective all -b 1K -e 4K -f 2 -n 5 -w 1)
set(number "[0-9]+[.]?[0-9]*")

# ---- nccl-tests -----------------------------------------------------------------------------------------------------
run(0 ${all})
lines_matching(rows "${output}" "^ *[0-9]")
list(LENGTH rows count)
if(NOT count EQUAL 43) # 14 collectives with 3 sizes each, and the barrier
  message(FATAL_ERROR "expected 43 rows:\n${output}")
endif()
foreach(row IN LISTS rows)
  expect_match("${row}" "^ +[0-9]+ +[0-9]+ +[a-z0-9]+ +[a-z]+ +-?[0-9]+( +${number} +${number} +${number} +(0|N/A))( +${number} +${number} +${number} +(0|N/A))$")
endforeach()
lines_matching(others "${output}" "^[^# 0-9]")
if(others)
  message(FATAL_ERROR "lines are neither rows nor comments: ${others}")
endif()
expect_match("${output}" "# distribution linear: the block of rank r has r [+] 1 of 3 parts")
expect_match("${output}" "# broadcast has no out-of-place form")
expect_match("${output}" "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : ${number}\n#\n$")
run(0 -t 2 -b 1K -e 1K -n 5 --percentiles 50,99)
expect_match("${output}" "#wrong +p50 +p99 +p50 +p99\n")

# ---- OSU Micro-Benchmarks -------------------------------------------------------------------------------------------
run(0 ${all} --format osu --full)
lines_matching(rows "${output}" "^[0-9]")
list(LENGTH rows count)
if(NOT count EQUAL 42) # the barrier has no size
  message(FATAL_ERROR "expected 42 rows:\n${output}")
endif()
foreach(row IN LISTS rows)
  expect_match("${row}" "^[0-9]+( +${number})( +${number})( +${number}) +5$")
endforeach()
expect_match("${output}" "\n# Size       Avg Latency\\(us\\)   Min Latency\\(us\\)   Max Latency\\(us\\)  Iterations\n1024  ")
expect_match("${output}" "\n# Avg Latency\\(us\\)   Min Latency\\(us\\)   Max Latency\\(us\\)  Iterations\n +${number} ")

# ---- JSON and CSV ---------------------------------------------------------------------------------------------------
run(0 ${all} --format csv -J old.json)
file(WRITE "${scratch}/old.csv" "${output}")
lines_matching(rows "${output}" ",")
list(LENGTH rows count)
if(NOT count EQUAL 74) # names, and two rows for calls with two placements: 10 collectives of 3 sizes
  message(FATAL_ERROR "expected 74 lines:\n${output}")
endif()
list(GET rows 0 names)
expect_match("${names}" "^program,version,date_utc,hosts,processor,cores,kernel,ranks,transport,.*,size_bytes,.*,time_us,.*,algbw_gb_per_s,")
file(READ "${scratch}/old.json" json)
string(JSON ranks GET "${json}" rank_count)
string(JSON count LENGTH "${json}" results)
if(NOT ranks EQUAL 2 OR NOT count EQUAL 43)
  message(FATAL_ERROR "expected 2 ranks and 43 results:\n${json}")
endif()
run(0 -t 2 -b 1K -e 1K -n 5 --format json)
string(JSON iterations LENGTH "${output}" results 0 in_place iterations_us)
if(NOT iterations EQUAL 5)
  message(FATAL_ERROR "expected 5 iterations:\n${output}")
endif()

run(1 -t 2 -b 1K -e 1K -n 5 --corrupt 3 --format csv)
expect_match("${errors}" "hocket-perf: 6 elements of the results are wrong\n$")

# ---- comparison -----------------------------------------------------------------------------------------------------
# Both files are of one run.
run(0 --compare old.json old.csv --tolerance 0%)
expect_match("${output}" "# 73 compared: 0 slower and 0 faster by more than 0 %. only in the old file: 0")
string(JSON slower SET "${json}" results 1 in_place time_us 1e6)
string(JSON slower SET "${slower}" results 1 in_place max_us 1e6)
string(JSON slower SET "${slower}" results 1 in_place algbw_gb_per_s 2.048e-6)
file(WRITE "${scratch}/slower.json" "${slower}")
run(1 --compare old.csv slower.json)
expect_match("${output}" "2048 .* all_reduce .* in_place [^\n]* SLOWER\n")
expect_match("${output}" "# 73 compared: 1 slower and 0 faster by more than 5 %")
run(0 --compare slower.json old.csv)
expect_match("${output}" "# 73 compared: 0 slower and 1 faster")
string(JSON other SET "${json}" rank_count 3)
string(JSON other SET "${other}" hosts "\"elsewhere\"")
file(WRITE "${scratch}/other.json" "${other}")
run(0 --compare old.csv other.json)
expect_match("${errors}" "warning: different hosts: .*elsewhere.*warning: different numbers of ranks: '2' and '3'")

# ---- files that can't be compared -----------------------------------------------------------------------------------
string(LENGTH "${json}" length)
math(EXPR half "${length} / 2")
string(SUBSTRING "${json}" 0 ${half} part)
file(WRITE "${scratch}/part.json" "${part}")
run(2 --compare old.json part.json)
expect_match("${errors}" "^hocket-perf: --compare: 'part.json' is incomplete: .*; measure again\n$")
file(WRITE "${scratch}/table.txt" "# size time\n8 1.0\n")
run(2 --compare table.txt old.json)
expect_match("${errors}" "'table.txt' was not written by hocket-perf")
run(2 --compare old.json nothing.json)
expect_match("${errors}" "'nothing.json' can't be read: No such file or directory")
run(2 --compare old.json .)
expect_match("${errors}" "'.' can't be read: it is a folder")
run(2 --compare /dev/zero old.json)
expect_match("${errors}" "'/dev/zero' can't be read: it is a device, neither a regular file nor a pipe")
