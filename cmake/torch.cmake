# LibTorch as targets of our own, because find_package(Torch) of a CUDA wheel needs a CUDA toolkit even for a CPU build.
# PLANWRIGHT_TORCH is the folder with include/ and lib/; third_party/fetch_wheels makes one in the cache folder.
if(NOT EXISTS "${PLANWRIGHT_TORCH}/include/ATen/ATen.h")
  message(FATAL_ERROR "no LibTorch at PLANWRIGHT_TORCH='${PLANWRIGHT_TORCH}'. ./dev build fetches one. Or set it to "
                      "the folder with LibTorch's include/ and lib/, or build only the planner with "
                      "-DPLANWRIGHT_EXECUTOR=OFF")
endif()
add_library(torch INTERFACE)
target_include_directories(torch SYSTEM INTERFACE "${PLANWRIGHT_TORCH}/include"
                           "${PLANWRIGHT_TORCH}/include/torch/csrc/api/include")
target_compile_definitions(torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1 USE_DISTRIBUTED USE_C10D_GLOO)
set_target_properties(torch PROPERTIES PLANWRIGHT_SEES_TORCH TRUE)
target_link_libraries(torch INTERFACE "${PLANWRIGHT_TORCH}/lib/libtorch_cpu.so" "${PLANWRIGHT_TORCH}/lib/libc10.so")
target_link_options(torch INTERFACE "-Wl,-rpath,${PLANWRIGHT_TORCH}/lib" "-Wl,--allow-shlib-undefined")

# GPUs: libtorch_cuda of the same LibTorch, CUDA's runtime, cuBLASLt, and NCCL. Builds without a GPU, and what is built
# starts without a GPU and without its driver, too: only LibTorch looks for the driver, when something asks for a
# device.
option(PLANWRIGHT_CUDA "build the executor for NVIDIA GPUs (needs CUDA and NCCL headers)" OFF)
if(PLANWRIGHT_CUDA)
  if(NOT EXISTS "${PLANWRIGHT_TORCH}/lib/libtorch_cuda.so")
    message(FATAL_ERROR "the LibTorch at PLANWRIGHT_TORCH='${PLANWRIGHT_TORCH}' is one for CPUs: it has no "
                        "lib/libtorch_cuda.so. ./dev build gpu fetches one for GPUs")
  endif()
  # Code for Ampere and Hopper. Younger GPUs compile Hopper's PTX when they first run it.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 17)  # CMake 3.25 knows no later one for nvcc
  find_package(CUDAToolkit REQUIRED)
  execute_process(COMMAND ${CMAKE_READELF} -d "${PLANWRIGHT_TORCH}/lib/libc10_cuda.so" OUTPUT_VARIABLE torch_needs)
  if(torch_needs MATCHES "libcudart\\.so\\.([0-9]+)" AND NOT CMAKE_MATCH_1 EQUAL CUDAToolkit_VERSION_MAJOR)
    message(FATAL_ERROR "the LibTorch at PLANWRIGHT_TORCH='${PLANWRIGHT_TORCH}' is built for CUDA ${CMAKE_MATCH_1}, "
                        "and ${CMAKE_CUDA_COMPILER} is of CUDA ${CUDAToolkit_VERSION}. Name a toolkit of CUDA "
                        "${CMAKE_MATCH_1}, or let ./dev build gpu fetch its compiler")
  endif()
  # Where wheels lie side by side, the NCCL that LibTorch itself loads; else one of the toolkit or of the system.
  get_filename_component(nccl_wheel "${PLANWRIGHT_TORCH}/../nvidia/nccl" ABSOLUTE)
  find_path(NCCL_INCLUDE nccl.h HINTS ${nccl_wheel}/include ${CUDAToolkit_INCLUDE_DIRS} REQUIRED NO_CACHE)
  find_library(NCCL_LIBRARY nccl HINTS ${nccl_wheel}/lib ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib
               REQUIRED NO_CACHE)
  get_filename_component(nccl_folder "${NCCL_LIBRARY}" DIRECTORY)
  # Likewise cuBLASLt, which works on handles that LibTorch makes: it must be the very library that LibTorch loads.
  get_filename_component(cuda_wheel "${PLANWRIGHT_TORCH}/../nvidia/cu${CUDAToolkit_VERSION_MAJOR}" ABSOLUTE)
  find_library(CUBLASLT_LIBRARY cublasLt HINTS ${cuda_wheel}/lib ${CUDAToolkit_LIBRARY_DIR}
               ${CUDAToolkit_LIBRARY_ROOT}/lib REQUIRED NO_CACHE)
  get_filename_component(cublas_folder "${CUBLASLT_LIBRARY}" DIRECTORY)
  add_library(torch_cuda INTERFACE)
  target_compile_definitions(torch_cuda INTERFACE PLANWRIGHT_CUDA)
  target_include_directories(torch_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS} ${NCCL_INCLUDE})
  target_link_libraries(torch_cuda INTERFACE torch)
  target_link_options(torch_cuda INTERFACE "-Wl,--no-as-needed" "${PLANWRIGHT_TORCH}/lib/libtorch_cuda.so"
                      "${PLANWRIGHT_TORCH}/lib/libc10_cuda.so" "${CUBLASLT_LIBRARY}" "${NCCL_LIBRARY}"
                      "-Wl,--as-needed" "-Wl,-rpath,${nccl_folder}" "-Wl,-rpath,${cublas_folder}")
  target_link_libraries(torch_cuda INTERFACE CUDA::cudart)
endif()
