# The target penstock_liburing: liburing where it is installed, nothing where it is not.
#
# The static library is preferred, so that a wheel built here needs no liburing where it runs; only if it is position
# independent, which not every distribution's is.

add_library(penstock_liburing INTERFACE)

find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(PENSTOCK_URING QUIET liburing)
endif()
find_path(PENSTOCK_URING_INCLUDE liburing.h HINTS ${PENSTOCK_URING_INCLUDE_DIRS})
find_library(PENSTOCK_URING_STATIC liburing.a HINTS ${PENSTOCK_URING_LIBRARY_DIRS})
find_library(PENSTOCK_URING_SHARED NAMES liburing.so uring HINTS ${PENSTOCK_URING_LIBRARY_DIRS})
mark_as_advanced(PENSTOCK_URING_INCLUDE PENSTOCK_URING_STATIC PENSTOCK_URING_SHARED)

# Whether a shared object can be linked from it.
function(penstock_try_liburing result library)
  set(probe ${PROJECT_BINARY_DIR}/liburing_probe)
  file(WRITE ${probe}/probe.cpp
       "#include <liburing.h>\nextern \"C\" int penstock_probe() { io_uring r; return io_uring_queue_init(1, &r, 0); }\n")
  file(WRITE ${probe}/CMakeLists.txt "cmake_minimum_required(VERSION 3.24)\nproject(probe CXX)\n"
       "set(CMAKE_CXX_STANDARD 20)\nadd_library(probe SHARED probe.cpp)\n"
       "target_include_directories(probe PRIVATE \"${PENSTOCK_URING_INCLUDE}\")\n"
       "target_link_libraries(probe PRIVATE \"${library}\")\n"
       "target_link_options(probe PRIVATE -Wl,--no-undefined)\n")
  try_compile(${result} ${probe}/build ${probe} probe)
  set(${result} ${${result}} PARENT_SCOPE)
endfunction()

set(library "")
if(PENSTOCK_URING_INCLUDE)
  foreach(candidate IN ITEMS "${PENSTOCK_URING_STATIC}" "${PENSTOCK_URING_SHARED}")
    if(candidate AND NOT library)
      string(MD5 key "${candidate}")
      if(NOT DEFINED PENSTOCK_URING_LINKS_${key})
        penstock_try_liburing(PENSTOCK_URING_LINKS_${key} "${candidate}")
      endif()
      if(PENSTOCK_URING_LINKS_${key})
        set(library "${candidate}")
      endif()
    endif()
  endforeach()
endif()

if(library)
  message(STATUS "liburing: ${library}")
  target_include_directories(penstock_liburing SYSTEM INTERFACE ${PENSTOCK_URING_INCLUDE})
  target_link_libraries(penstock_liburing INTERFACE ${library})
  target_compile_definitions(penstock_liburing INTERFACE PENSTOCK_HAS_LIBURING=1)
else()
  message(STATUS "liburing not found: pread pool instead of io_uring; install liburing-dev and reinstall for io_uring")
endif()
