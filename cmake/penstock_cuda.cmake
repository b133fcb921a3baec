# Sets PENSTOCK_HAS_CUDA. CUDA's runtime is linked statically: a wheel asks for nothing but the driver, and only when used.
#
# AUTO compiles kernels, which takes minutes, where they can run: for the GPU that is here.

set(PENSTOCK_HAS_CUDA OFF)
set(build_cuda ${PENSTOCK_CUDA})
if(PENSTOCK_CUDA STREQUAL "AUTO" AND NOT EXISTS /dev/nvidiactl)
  message(STATUS "no GPU here: CPU executor only; PENSTOCK_CUDA=ON compiles kernels for GPUs elsewhere")
  set(build_cuda OFF)
endif()
if(NOT build_cuda STREQUAL "OFF")
  # Before the language is looked for: a compiler may refuse CMake's own choice of an architecture.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    if(PENSTOCK_CUDA STREQUAL "AUTO")
      set(CMAKE_CUDA_ARCHITECTURES native CACHE STRING "CUDA architectures" FORCE)
    else()
      set(CMAKE_CUDA_ARCHITECTURES 80 90 100 CACHE STRING "CUDA architectures" FORCE)
    endif()
  endif()
  foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
    if(architecture MATCHES "^([0-9]+)" AND CMAKE_MATCH_1 LESS 80)
      message(FATAL_ERROR "CUDA architecture ${architecture}: kernels wait and share memory as GPUs do from compute capability "
                          "8.0 on: give -DCMAKE_CUDA_ARCHITECTURES=80 or higher")
    endif()
  endforeach()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)

  if(build_cuda STREQUAL "ON")
    enable_language(CUDA)
  else()
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      enable_language(CUDA)
    else()
      message(STATUS "nvcc not found: CPU executor only")
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    set(PENSTOCK_HAS_CUDA ON)
    # A compiler younger than CMake is taken for one that knows no C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    # Kernels call the library's cold functions instead of taking them in, and so do not take their registers.
    set(CMAKE_CUDA_SEPARABLE_COMPILATION ON)
  endif()
endif()

# A kernel that reads through a cache gets at least this many registers.
set(PENSTOCK_COLD_REGISTERS 28 CACHE STRING "Register cap of the functions in src/device")

function(penstock_cap_registers)
  file(GLOB device_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/*.cu)
  set_source_files_properties(${device_sources} PROPERTIES COMPILE_OPTIONS "-maxrregcount=${PENSTOCK_COLD_REGISTERS}")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/device/block_io.cu ${PROJECT_SOURCE_DIR}/src/device/files.cu
                              PROPERTIES COMPILE_OPTIONS "-maxrregcount=64")
  # The resident kernel has a multiprocessor's registers for 512 threads, and so have the functions that it calls.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/controller/model_kernel.cu
                              PROPERTIES COMPILE_OPTIONS "-maxrregcount=128")
endfunction()

# For targets whose kernels `launch` starts: what they instantiate themselves (groups that are no warps, reads with a function
# of their own) must fit the registers that it leaves a kernel.
function(penstock_fit_launch target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-maxrregcount=64>")
endfunction()

# PUBLIC, because it says which host functions the library has. No header's layout may depend on it.
function(penstock_link_cuda target)
  if(PENSTOCK_HAS_CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(version ${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR})
    target_compile_definitions(${target} PUBLIC PENSTOCK_HAS_CUDA=1 PENSTOCK_CUDA_VERSION="${version}")
    target_compile_options(${target} PUBLIC "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-Wall>")
    target_link_libraries(${target} PUBLIC CUDA::cudart_static)
  endif()
endfunction()
