#include "planner/wire/records/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <initializer_list>
#include <span>
#include <utility>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string PathOf(const std::string& name) { return testing::TempDir() + name; }

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The contents of a file with this header and this many bytes of data.
std::string FileOf(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, '\0');
}

absl::Status StatusOf(const std::string& contents) {
  const std::string path = PathOf("malformed.safetensors");
  std::ofstream(path, std::ios::binary) << contents;
  return SafetensorsFile::Open(path).status();
}

TEST(Safetensors, RoundTripKeepsNamesShapesBytesAndMetadata) {
  const std::string path = PathOf("round_trip.safetensors");
  const std::vector<TensorBytes> tensors = {{"b", DType::kFp64, {2, 2}, Bytes<double>({1, 2, 3, 0.1})},
                                            {"a", DType::kBf16, {3}, Bytes<uint16_t>({1, 2, 3})},
                                            {"empty", DType::kFp32, {0, 7}, ""},
                                            {"scalar", DType::kInt64, {}, Bytes<int64_t>({-5})}};
  ASSERT_TRUE(WriteSafetensors(path, tensors, {{"key", "value"}}).ok());
  auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const SafetensorsFile moved = *std::move(file);
  ASSERT_EQ(moved.tensors().size(), tensors.size());
  for (const TensorBytes& tensor : tensors) {
    const auto stored = moved.Find(tensor.name);
    ASSERT_TRUE(stored.ok()) << stored.status();
    EXPECT_EQ(stored->dtype, tensor.dtype);
    EXPECT_EQ(stored->shape, tensor.shape);
    EXPECT_EQ(*moved.Read(*stored), tensor.bytes) << tensor.name;
  }
  EXPECT_EQ(moved.metadata().at("key"), "value");
  EXPECT_EQ(moved.Find("c").status().code(), absl::StatusCode::kNotFound);
}

TEST(Safetensors, OrderOfTensorsDoesNotChangeTheFile) {
  const TensorBytes a = {"a", DType::kFp32, {1}, Bytes<float>({1})}, b = {"b", DType::kFp32, {2}, Bytes<float>({2, 3})};
  ASSERT_TRUE(WriteSafetensors(PathOf("ab.safetensors"), {a, b}).ok());
  ASSERT_TRUE(WriteSafetensors(PathOf("ba.safetensors"), {b, a}).ok());
  EXPECT_EQ(Slurp(PathOf("ab.safetensors")), Slurp(PathOf("ba.safetensors")));
}

TEST(Safetensors, LayoutIsThatOfTheFile) {
  const std::string path = PathOf("layout.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, {{"b", DType::kBf16, {1}, "12"}, {"a", DType::kFp64, {1}, "12345678"}}).ok());
  const auto layout = LayOutSafetensors({{"b", DType::kBf16, {1}}, {"a", DType::kFp64, {1}}});
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->header + "12345678" + "12", Slurp(path));
  EXPECT_THAT(layout->order, ElementsAre(1, 0));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->header(), layout->header);
  EXPECT_EQ(file->bytes(), static_cast<int64_t>(layout->header.size() + 10));
  EXPECT_EQ(file->header().size() % 8, 0u);
  EXPECT_FALSE(LayOutSafetensors({{"a", DType::kFp32, {1}}, {"a", DType::kFp32, {1}}}).ok());
  const int64_t half = int64_t{1} << 61;
  EXPECT_FALSE(LayOutSafetensors({{"a", DType::kBf16, {half}}, {"b", DType::kBf16, {half}}}).ok());
  EXPECT_FALSE(LayOutSafetensors({{std::string(kMaxSafetensorsHeader, 'a'), DType::kFp32, {1}}}).ok());
}

// Tensors of types that no run has are copied: they are laid out too.
TEST(Safetensors, LayoutTakesEveryTypeOfTheFormat) {
  const auto layout = LayOutSafetensors({{"a", "F16", {3}}, {"b", "F8_E4M3", {5}}, {"c", DType::kInt64, {1}}});
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_THAT(layout->order, ElementsAre(2, 0, 1));
  EXPECT_NE(layout->header.find("\"data_offsets\":[14,19],\"dtype\":\"F8_E4M3\""), std::string::npos)
      << layout->header.substr(8);
  EXPECT_FALSE(LayOutSafetensors({{"a", "F17", {3}}}).ok());
}

TEST(Safetensors, WriterRefusesBytesThatDoNotFit) {
  EXPECT_FALSE(WriteSafetensors(PathOf("x"), {{"a", DType::kFp32, {2}, "1234"}}).ok());
  EXPECT_FALSE(
      WriteSafetensors(PathOf("x"), {{"a", DType::kFp32, {1}, "1234"}, {"a", DType::kFp32, {1}, "1234"}}).ok());
  EXPECT_FALSE(WriteSafetensors(PathOf("no/such/folder"), {}).ok());
}

// Infinity and NaN of every kind are found at their place, wherever the bytes begin; the largest numbers are finite.
template <typename Bits>
void ExpectNotFinite(DType dtype, std::initializer_list<Bits> found, std::initializer_list<Bits> finite) {
  for (size_t count : {size_t{1}, size_t{7}, size_t{4096}, size_t{4097}, size_t{10'000}}) {
    std::vector<Bits> numbers(count);
    for (size_t i = 0; i < count; ++i) numbers[i] = finite.begin()[i % finite.size()];
    for (size_t shift : {size_t{0}, size_t{1}}) {
      std::string bytes(count * sizeof(Bits) + shift, '\0');
      const auto check = [&] {
        std::memcpy(bytes.data() + shift, numbers.data(), count * sizeof(Bits));
        return FirstNotFinite(dtype, std::as_bytes(std::span(bytes)).subspan(shift));
      };
      EXPECT_EQ(check(), std::nullopt);
      for (size_t at : {size_t{0}, count / 2, count - 1}) {
        for (const Bits number : found) {
          const Bits before = std::exchange(numbers[at], number);
          EXPECT_EQ(check(), static_cast<int64_t>(at)) << count << " " << number;
          numbers[at] = before;
        }
      }
    }
  }
}

TEST(Safetensors, NumbersThatAreNotFiniteAreFound) {
  ExpectNotFinite<uint64_t>(DType::kFp64, {0x7ff0000000000000, 0xfff0000000000000, 0x7ff0000000000001, ~uint64_t{0}},
                            {0, 1, 0x8000000000000000, 0x7fefffffffffffff, 0xffefffffffffffff});
  ExpectNotFinite<uint32_t>(DType::kFp32, {0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffffffff},
                            {0, 1, 0x80000000, 0x7f7fffff, 0xff7fffff});
  ExpectNotFinite<uint16_t>(DType::kBf16, {0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffff}, {0, 1, 0x8000, 0x7f7f, 0xff7f});
  const int64_t integer = -1;
  EXPECT_EQ(FirstNotFinite(DType::kInt64, std::as_bytes(std::span(&integer, 1))), std::nullopt);
}

TEST(Safetensors, AMissingFileIsNotFound) {
  EXPECT_EQ(SafetensorsFile::Open(PathOf("none")).status().code(), absl::StatusCode::kNotFound);
}

TEST(Safetensors, MalformedFilesAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"1234567", "too few"},
      {std::string(8, '\xff'), "no safetensors file"},
      {FileOf("{}", 0).substr(0, 9), "longer than the file"},
      {FileOf("{", 0), "not a JSON object"},
      {FileOf("[]", 0), "not a JSON object"},
      {FileOf(R"({"a":1})", 0), "not an object"},
      {FileOf(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})", 2), "F16"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), "shape"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4), "shape"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0), "overflows"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4), "dimensions"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4), "backwards"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4), "needs 8 bytes"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4), "data_offsets"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8), "starts at 4"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
              R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
              4),
       "starts at 0"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5), "the data at 5"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3), "the data at 3"},
      {FileOf(R"({"__metadata__":{"a":1}})", 0), "not a string"}};
  for (const auto& [contents, message] : cases) {
    const absl::Status status = StatusOf(contents);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("malformed.safetensors"));
  }
}

}  // namespace
}  // namespace planwright
