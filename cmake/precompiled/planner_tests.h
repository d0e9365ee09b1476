// Precompiled for tests without LibTorch (cmake/precompiled.cmake). A build with PLANWRIGHT_PCH=OFF does not read this
// file, so nothing may depend on it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "cmake/precompiled/planner.h"
