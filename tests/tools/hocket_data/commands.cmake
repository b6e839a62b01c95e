# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D program=HOCKET_DATA -D has_archive=1 -D scratch=FOLDER -P commands.cmake
#
# What `check` finds in files of each type; which tar files `index` accepts, and why it refuses the others.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${scratch}")
file(MAKE_DIRECTORY "${scratch}/cats")

# Runs the program with ARGN, which must exit with `status` and print a text that matches `expression`.
function(expect status expression)
  execute_process(COMMAND "${program}" ${ARGN} WORKING_DIRECTORY "${scratch}" RESULT_VARIABLE found OUTPUT_VARIABLE text
                  ERROR_VARIABLE problems)
  if(NOT found EQUAL status OR NOT "${text}${problems}" MATCHES "${expression}")
    message(FATAL_ERROR "hocket-data ${ARGN}: exit status ${found}, expected ${status} and ${expression} in:\n"
                        "${text}${problems}")
  endif()
endfunction()
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${scratch}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# check
file(WRITE "${scratch}/lines.txt" "a\n\nb\na\n \t\na\n")
expect(1 "lines.txt: 6 samples.*empty: 2\n    sample 1\n    sample 4\n.*duplicates: 2\n    sample 3 equals sample 0\n    sample 5 equals"
       check lines.txt)
expect(1 "empty: 2\n    sample 1\n    [.][.][.]\n" check lines.txt --list 1)
file(WRITE "${scratch}/whole.txt" "a\nb\n")
expect(0 "whole.txt: 2 samples\n  nothing found" check whole.txt)
expect(1 "whole.txt: 2 samples.*lines.txt: 6 samples" check whole.txt lines.txt)
file(WRITE "${scratch}/tokens.bin" "abcdabXY") # tokens 25185, 25699, 25185, 22872
expect(0 "tokens.bin: 3 samples\n  nothing found" check tokens.bin --length 1)
expect(1 "out of range: 2\n    sample 0: token 1 is 25699, and must be below 25699\n    sample 1: token 0"
       check tokens.bin --length 1 --vocabulary 25699)
expect(1 "tokens.bin' at byte 0: it is no .npy file" check tokens.bin --type npy)
expect(1 "cannot map 'none.txt': No such file" check none.txt)
expect(2 "--length" check tokens.bin --length 0)
expect(2 "--type" check tokens.bin --type jpg)

if(NOT has_archive)
  expect(1 "built without libarchive" index x.tar)
  return()
endif()

# index: of each form of tar, with names that do not fit into a header
string(REPEAT "x" 150 long)
foreach(number IN ITEMS 1 2 3)
  file(WRITE "${scratch}/cats/${number}.jpg" "image ${number}")
  file(WRITE "${scratch}/cats/${number}.cls" "${number}")
endforeach()
file(WRITE "${scratch}/cats/${long}.jpg" "long")
file(WRITE "${scratch}/cats/README" "no sample")
set(files cats/README cats/1.jpg cats/1.cls cats/2.jpg cats/2.cls cats/3.jpg cats/3.cls)
foreach(format IN ITEMS ustar gnu pax)
  set(more cats/${long}.jpg)
  set(samples 4)
  if(format STREQUAL "ustar")
    set(more "")
    set(samples 3)
  endif()
  run(tar --format=${format} -cf ${format}.tar ${files} ${more})
  expect(0 "${format}.tar.index: ${samples} samples.*'cats/README' has no key and kind" index ${format}.tar)
  expect(0 "${format}.tar: ${samples} samples\n  nothing found" check ${format}.tar)
  # The bytes at each offset are those of the file.
  file(READ "${scratch}/${format}.tar.index" index)
  foreach(number RANGE 2)
    math(EXPR name "${number} + 1")
    string(JSON at GET "${index}" samples ${number} files 0 at)
    string(JSON bytes GET "${index}" samples ${number} files 0 bytes)
    file(READ "${scratch}/${format}.tar" found OFFSET ${at} LIMIT ${bytes} HEX)
    string(HEX "image ${name}" expected)
    if(NOT found STREQUAL expected)
      message(FATAL_ERROR "${format}.tar has ${found} at byte ${at}, not image ${name}")
    endif()
  endforeach()
endforeach()
run(tar -cf apart.tar cats/1.jpg cats/2.jpg cats/1.cls)
expect(0 "apart.tar.index: 3 samples" index apart.tar)
expect(1 "duplicates: 1\n    sample 2 has the key of sample 0" check apart.tar)

# Tar files that are refused, with file and offset
file(CREATE_LINK 1.jpg "${scratch}/cats/link.jpg" SYMBOLIC)
file(CREATE_LINK "${scratch}/cats/1.jpg" "${scratch}/cats/hard.jpg")
run(tar -cf link.tar cats/link.jpg)
run(tar -cf hard.tar cats/1.jpg cats/hard.jpg)
run(tar -cPf absolute.tar "${scratch}/cats/2.jpg")
run(tar -cPf outside.tar cats/2.jpg --transform "s,.*,a/../../2.jpg,")
run(tar -cf twice.tar cats/2.jpg cats/3.jpg --transform "s,3.jpg,2.jpg,")
run(truncate -s 1M sparse.dat)
file(APPEND "${scratch}/sparse.dat" "x")
run(tar -cSf sparse.tar sparse.dat)
run(tar -czf packed.tar cats/2.jpg)
run(cp gnu.tar cut.tar)
run(truncate -s 2050 cut.tar)
file(WRITE "${scratch}/text.tar" "this is no tar file")
file(WRITE "${scratch}/empty.tar" "")
expect(1 "'link.tar' at byte [0-9]+: 'cats/link.jpg' is a link" index link.tar)
expect(1 "'hard.tar' at byte [0-9]+: 'cats/hard.jpg' is a link" index hard.tar)
expect(1 "'absolute.tar' at byte [0-9]+: '/.*2.jpg' is an absolute name" index absolute.tar)
expect(1 "'outside.tar' at byte [0-9]+: 'a/../../2.jpg' is a name outside of its folder" index outside.tar)
expect(1 "'twice.tar' at byte [0-9]+: 'cats/2.jpg' is in the sample before already" index twice.tar)
expect(1 "'sparse.tar' at byte [0-9]+: 'sparse.dat' is a sparse file" index sparse.tar)
expect(1 "'packed.tar' at byte 0: it is no whole tar file without compression" index packed.tar)
expect(1 "'cut.tar' at byte [0-9]+: it is no whole tar file.*[Tt]runcated" index cut.tar)
expect(1 "'text.tar' at byte 0: it is no whole tar file" index text.tar)
expect(1 "'empty.tar' at byte 0: it is no whole tar file" index empty.tar)
expect(1 "cannot map 'none.tar'" index none.tar)
file(GLOB left "${scratch}/*.unfinished" "${scratch}/cut.tar.index")
if(left)
  message(FATAL_ERROR "an unfinished file remains: ${left}")
endif()

# An index that does not belong to its tar file
file(APPEND "${scratch}/gnu.tar" "more")
expect(1 "'gnu.tar' has [0-9]+ bytes, and its index is of a file of [0-9]+: run hocket-data index again" check gnu.tar)
run(truncate -s 100 pax.tar.index)
expect(1 "'pax.tar.index': byte 100: " check pax.tar)
