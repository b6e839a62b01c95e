# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   hocket::compiled      hocket::hocket, with everything compiled once that not every translation unit needs: ranks as
#                         threads, and simulated ranks
#   hocket::compiled_ucx  the same and hocket::ucx: ranks as processes; exists only if UCX was found
#
# Static libraries, built as part of the project that links them, with its compiler, build type and flags: so exceptions and
# NDEBUG agree. A macro that a project defines for its own targets only, such as HOCKET_ASSERTION_LEVEL, must also be defined
# for hocket_compiled and hocket_compiled_ucx, or with add_compile_definitions() before hocket is found.
#
# Included by the source tree, the installed package and the Conan package, which all define hocket::hocket before.

# Adds the library hocket::<name> of <source>, which sets HOCKET_SEPARATE_COMPILATION for itself and its users.
function(hocket_add_compiled name source)
  if(TARGET hocket_${name})
    return()
  endif()
  add_library(hocket_${name} STATIC EXCLUDE_FROM_ALL "${source}")
  add_library(hocket::${name} ALIAS hocket_${name})
  set_target_properties(hocket_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(hocket_${name} PUBLIC HOCKET_SEPARATE_COMPILATION)
  target_link_libraries(hocket_${name} PUBLIC ${ARGN})
endfunction()

hocket_add_compiled(compiled "${CMAKE_CURRENT_LIST_DIR}/hocket-compiled.cpp" hocket::hocket)
if(TARGET hocket::ucx)
  hocket_add_compiled(compiled_ucx "${CMAKE_CURRENT_LIST_DIR}/hocket-compiled-ucx.cpp" hocket::compiled hocket::ucx)
endif()
