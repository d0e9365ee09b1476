// Files of logits, and of ours, for the tests of exchange_logits.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/wire/records/safetensors.h"

namespace planwright {

template <typename Number>
TensorBytes LogitsTensor(std::string name, DType dtype, std::vector<int64_t> shape,
                         const std::vector<Number>& numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return {std::move(name), dtype, std::move(shape), std::move(bytes)};
}

inline TensorBytes Ids(std::vector<int64_t> shape, const std::vector<int64_t>& ids,
                       const std::string& name = "token_ids") {
  return LogitsTensor(name, DType::kInt64, std::move(shape), ids);
}

inline TensorBytes Fp64(std::vector<int64_t> shape, const std::vector<double>& numbers,
                        const std::string& name = "logits") {
  return LogitsTensor(name, DType::kFp64, std::move(shape), numbers);
}

class LogitsFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "logitsXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::vector<TensorBytes>& tensors,
                    const std::map<std::string, std::string>& metadata = {}) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(WriteSafetensors(path, tensors, metadata).ok());
    return path;
  }
  std::string folder_;
};

}  // namespace planwright
