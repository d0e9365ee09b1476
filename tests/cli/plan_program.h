// Runs the real `plan` program, as a shell would.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "tests/support/folders.h"

namespace planwright::testing {

struct ProgramResult {
  int status = -1;
  std::string out, err;
};

// Each test has its own folder.
class PlanProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "planXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // `arguments`: words as in a shell, quoted if need be.
  ProgramResult Plan(const std::string& arguments) { return Shell(InBuild("bin/plan") + " " + arguments); }
  ProgramResult Shell(const std::string& line) {
    const int status = std::system((line + " >" + folder_ + "/out 2>" + folder_ + "/err </dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Read("out"), Read("err")};
  }
  std::string Read(const std::string& name) {
    return ReadWholeFile(folder_ + "/" + name, SIZE_MAX).value_or("(missing)");
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  std::string folder_;
};

// True if a shell finds the program `name`.
inline bool Installed(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace planwright::testing
