# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D program=HOCKET_CHECKPOINT -D example=EXAMPLE_CHECKPOINT -D scratch=FOLDER -P commands.cmake
#
# Lists, shows, verifies and converts what the example has saved; and what a damaged file and wrong arguments lead to.

cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/../commands.cmake")

execute_process(COMMAND "${example}" "${scratch}/saved" COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)

expect(0 "step-200.0.1 +200 +0 +3.9 KiB +2" list saved)
expect(0 "2 tensors, 3.9 KiB in 4 files.*weights +F32 +1000 +3.9 KiB +4.*step +U64 +a number +8 B +1" show saved)
expect(0 "\"format\":\"hocket checkpoint\"" show saved --json --at step-200.0.1)
expect(0 "^step-200.0.1: whole" verify saved)

# Converted to other files and back, the elements are the same.
expect(0 "other/step-200.0.1: 3 files" convert saved --ranks 3 --to other)
expect(0 "weights +F32 +1000 +3.9 KiB +3" show other)
expect(0 "saved.safetensors: 2 tensors, 3.9 KiB" convert saved --file saved.safetensors)
expect(0 "other.safetensors: 2 tensors" convert other --file other.safetensors)
file(READ "${scratch}/saved.safetensors" one HEX)
file(READ "${scratch}/other.safetensors" two HEX)
string(LENGTH "${one}" length)
string(LENGTH "${two}" other_length)
string(SUBSTRING "${one}" 8192 -1 one)   # the header is a block of 4096 bytes
string(SUBSTRING "${two}" 8192 -1 two)
if(NOT length EQUAL other_length OR NOT one STREQUAL two)
  message(FATAL_ERROR "the two files of whole tensors differ")
endif()

# Any safetensors file is shown: one of whole tensors, a shard, and one of another program.
expect(0 "saved.safetensors: 2 tensors, 3.9 KiB.*weights +F32 +1000 +3.9 KiB +1.*step +U64 +a number +8 B +1"
       show saved.safetensors)
expect(0 "^{\"weights\":{\"dtype\":\"F32\",\"shape\":.1000.," show saved.safetensors --json)
expect(0 "weights.0:250. +F32 +250 +1000 B +1.*hocket.crc32c_of_blocks +U32"
       show saved/step-200.0.1/shard-0-of-4.safetensors)
set(corpus "${CMAKE_CURRENT_LIST_DIR}/../../fuzz/corpus/safetensors")
file(COPY "${corpus}/three_tensors" DESTINATION "${scratch}")   # with one of 20 bytes of data
expect(1 "three_tensors': header: its tensors have 20 bytes, but 1 follow" show three_tensors)
file(APPEND "${scratch}/three_tensors" "1234567890123456789")
expect(0 "3 tensors, 20 B\nstep: 200\n.*weight +BF16 +2 x 3 +12 B.*a. +F64 +a number +8 B.*empty +U8 +0 x 7 +0 B"
       show three_tensors)
expect(1 "gap': header: tensor \"w\" begins at byte 4" show "${corpus}/gap")
expect(1 "overflow': header: the data_offsets of tensor \"w\" do not fit" show "${corpus}/overflow")
expect(1 "--at is for a folder of checkpoints" show saved.safetensors --at step-200.0.1)

# Mistakes
expect(1 "saved.safetensors' exists already" convert saved --file saved.safetensors)
expect(1 "there is no checkpoint in 'none'" list none)
expect(1 "'step-7' is no name of a checkpoint" show saved --at step-7)
expect(1 "step-7.0.1/manifest.json'.*: No such file" show saved --at step-7.0.1)
expect(2 "--ranks N --to FOLDER, or --file FILE" convert saved)
expect(2 "--ranks" convert saved --ranks 0 --to x)
# The newest of a folder may be converted in it; an older one would become the newest.
expect(0 "other/step-200.1.1: 2 files" convert other --ranks 2 --to other)
expect(1 "'step-200.0.1' would become the newest checkpoint of 'other/'" convert other --at step-200.0.1 --ranks 2 --to other/)
expect(1 "step-7.0.1/manifest.json" convert other --at step-7.0.1 --ranks 2 --to other)
file(REMOVE_RECURSE "${scratch}/other/step-200.1.1")
file(GLOB shard "${scratch}/other/step-200.0.1/shard-1-*")
file(APPEND "${shard}" "x")
expect(1 "shard-1-of-3.safetensors' has [0-9]+ bytes instead of" verify other)
expect(1 "shard-1-of-3.safetensors' has [0-9]+ bytes instead of" convert other --file again.safetensors)
file(GLOB left "${scratch}/again*")
if(left)
  message(FATAL_ERROR "an unfinished file remains: ${left}")
endif()
