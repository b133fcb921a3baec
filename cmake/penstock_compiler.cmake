# Warnings for our own targets, and sanitizers for everything.

add_library(penstock_warning_flags INTERFACE)
set(warning_flags -Wall -Wextra -Wconversion -Wshadow)
# GCC 12 takes "text" + std::string for an overlapping copy.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND warning_flags -Wno-restrict)
endif()
if(PENSTOCK_WERROR)
  list(APPEND warning_flags -Werror)
endif()
target_compile_options(penstock_warning_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warning_flags}>")

# A plain property instead of a linked target, so that the flags never reach who links our libraries.
function(penstock_warnings target)
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:penstock_warning_flags,INTERFACE_COMPILE_OPTIONS>)
endfunction()

if(PENSTOCK_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(PENSTOCK_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
  add_compile_definitions(PENSTOCK_TSAN)
elseif(PENSTOCK_SANITIZE)
  message(FATAL_ERROR "PENSTOCK_SANITIZE is '${PENSTOCK_SANITIZE}': use address or thread, or leave it empty")
endif()

if(PENSTOCK_COVERAGE)
  # Threads count, too.
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()
