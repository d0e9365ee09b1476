// Folders of published weights for tests: the tensors of a plan under the names that others use, with values that are a
// function of name and index, in files that the test writes byte by byte.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

struct RawTensor {
  std::string type;  // "BF16"
  std::vector<int64_t> shape;
  std::string bytes;
};
using RawTensors = std::map<std::string, RawTensor>;

// A small number that every type holds exactly, from 1/64 to 3.
double PublishedValue(const std::string& name, int64_t index);

// `count` numbers of a type: F64, F32, F16 or BF16.
std::string BytesOf(const std::string& type, int64_t count, const std::function<double(int64_t)>& value);
RawTensor Numbers(const std::string& type, const std::vector<int64_t>& shape,
                  const std::function<double(int64_t)>& value);

// All tensors of the plan under Parameter::file_name, of one type.
RawTensors TensorsOf(const Plan& plan, const std::string& type);

// The contents of a safetensors file.
std::string FileOf(const RawTensors& tensors);
// model.safetensors.index.json and as many shards; with one, model.safetensors. Tensors are dealt in turn.
void WriteFolder(const std::string& folder, const RawTensors& tensors, int shards);
std::string ShardName(int shard, int shards);  // from 1: "model-00001-of-00002.safetensors"

void WriteText(const std::string& path, const std::string& text);
std::string ReadText(const std::string& path);

// A folder of the test's own, which is removed with it.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace planwright::testing
