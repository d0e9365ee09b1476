// Precompiled for tests that see LibTorch (cmake/precompiled.cmake). A build with PLANWRIGHT_EACH_FILE_ALONE=ON does
// not read this file, so nothing may depend on it.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cmake/precompiled/executor.h"
