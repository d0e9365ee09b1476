#include "tests/numerics/tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "planner/wire/records/safetensors.h"

namespace planwright::testing {
namespace {

template <typename T>
std::vector<double> Numbers(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

// The upper half of an fp32 number.
std::vector<double> Bf16Numbers(const std::string& bytes) {
  std::vector<double> values(bytes.size() / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t upper;
    std::memcpy(&upper, bytes.data() + i * 2, 2);
    const uint32_t bits = static_cast<uint32_t>(upper) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    values[i] = value;
  }
  return values;
}

}  // namespace

Tensors ReadTensors(const std::string& path) {
  Tensors tensors;
  const auto file = SafetensorsFile::Open(path);
  if (!file.ok()) {
    ADD_FAILURE() << path << ": " << file.status();
    return tensors;
  }
  for (const auto& [name, stored] : file->tensors()) {
    const auto bytes = file->Read(stored);
    if (!bytes.ok()) {
      ADD_FAILURE() << bytes.status();
      return tensors;
    }
    WholeTensor& tensor = tensors[name];
    tensor.shape = stored.shape;
    switch (stored.dtype) {
      case DType::kFp64: tensor.values = Numbers<double>(*bytes); break;
      case DType::kFp32: tensor.values = Numbers<float>(*bytes); break;
      case DType::kInt64: tensor.values = Numbers<int64_t>(*bytes); break;
      case DType::kBf16: tensor.values = Bf16Numbers(*bytes); break;
    }
  }
  return tensors;
}

double Distance(const WholeTensor& a, const WholeTensor& b) {
  if (a.shape != b.shape) return std::numeric_limits<double>::infinity();
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (!std::isfinite(a.values[i])) return std::numeric_limits<double>::infinity();
    difference += (a.values[i] - b.values[i]) * (a.values[i] - b.values[i]);
    size += b.values[i] * b.values[i];
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

}  // namespace planwright::testing
