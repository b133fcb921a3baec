# What kernels of the user's own are linked with when the program runs (libs/kernels/device): reads as LTO-IR, which the linker
# inlines, and everything else compiled, with register caps. One fatbin each, for all architectures of this build. And for
# linkers that take nothing but LTO-IR, such as cuda.compute's, and compilers that link nothing but LLVM IR, such as Triton's
# (made of PTX): reads with all that they call, a file for each architecture.

set(device_folder ${PROJECT_BINARY_DIR}/device)
set(device_parts)

set(architectures ${CMAKE_CUDA_ARCHITECTURES})
if(architectures STREQUAL "native")
  set(architectures ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
endif()
list(TRANSFORM architectures REPLACE "^([0-9]+).*$" "\\1")
list(REMOVE_DUPLICATES architectures)

# penstock_device_fatbin(SOURCE FORM FLAGS...): FORM is lto or sm.
function(penstock_device_fatbin source form)
  cmake_path(GET source STEM name)
  set(made ${device_folder}/${name}.${form}.fatbin)
  set(targets)
  foreach(architecture IN LISTS architectures)
    list(APPEND targets -gencode arch=compute_${architecture},code=${form}_${architecture})
  endforeach()
  add_custom_command(
    OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${device_folder}
    COMMAND ${CMAKE_CUDA_COMPILER} -std=c++20 -O3 --expt-relaxed-constexpr -dc -fatbin -MD -MF ${made}.d ${targets} ${ARGN}
            -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include -o ${made} ${source}
    DEPENDS ${source}
    DEPFILE ${made}.d
    COMMENT "Device library: ${name}"
    VERBATIM)
  set(device_parts ${device_parts} ${made} PARENT_SCOPE)
endfunction()

# penstock_device_whole(SOURCE FORM): nothing of it is left to link. FORM is ltoir or ptx.
function(penstock_device_whole source form)
  cmake_path(GET source STEM name)
  foreach(architecture IN LISTS architectures)
    if(form STREQUAL "ltoir")
      set(target -dc -ltoir -gencode arch=compute_${architecture},code=lto_${architecture})
    else()
      set(target -rdc=true -ptx -arch=compute_${architecture})
    endif()
    set(made ${device_folder}/${name}.sm_${architecture}.${form})
    add_custom_command(
      OUTPUT ${made}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${device_folder}
      COMMAND ${CMAKE_CUDA_COMPILER} -std=c++20 -O3 --expt-relaxed-constexpr -MD -MF ${made}.d ${target}
              -DPENSTOCK_WHOLE_LIBRARY -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include -o ${made} ${source}
      DEPENDS ${source}
      DEPFILE ${made}.d
      COMMENT "Device library: ${name}, ${form} of sm_${architecture}"
      VERBATIM)
    list(APPEND device_parts ${made})
  endforeach()
  set(device_parts ${device_parts} PARENT_SCOPE)
endfunction()

set(device_sources ${PROJECT_SOURCE_DIR}/libs/kernels/device)
penstock_device_fatbin(${device_sources}/read_calls.cu lto)
penstock_device_fatbin(${device_sources}/column_calls.cu lto)
penstock_device_fatbin(${device_sources}/file_calls.cu lto)
penstock_device_fatbin(${device_sources}/cold_calls.cu sm -maxrregcount=${PENSTOCK_COLD_REGISTERS})
penstock_device_fatbin(${device_sources}/span_calls.cu sm -maxrregcount=64)
penstock_device_fatbin(${device_sources}/folder_calls.cu sm -maxrregcount=64)
penstock_device_fatbin(${PROJECT_SOURCE_DIR}/src/device/files.cu sm -maxrregcount=64)
penstock_device_fatbin(${PROJECT_SOURCE_DIR}/src/device/read_slowly.cu sm -maxrregcount=${PENSTOCK_COLD_REGISTERS})
penstock_device_fatbin(${PROJECT_SOURCE_DIR}/src/device/write_back.cu sm -maxrregcount=${PENSTOCK_COLD_REGISTERS})
penstock_device_whole(${device_sources}/read_calls.cu ltoir)
penstock_device_whole(${device_sources}/read_calls.cu ptx)
add_custom_target(penstock_device_library ALL DEPENDS ${device_parts})
