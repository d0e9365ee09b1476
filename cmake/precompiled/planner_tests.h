// Precompiled for tests without LibTorch (cmake/precompiled.cmake). A build with PLANWRIGHT_EACH_FILE_ALONE=ON does not read this
// file, so nothing may depend on it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cmake/precompiled/planner.h"
