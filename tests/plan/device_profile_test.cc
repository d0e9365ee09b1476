// Profiles of devices: the same bytes come back, and what is damaged is refused with its place.
#include "planner/plan/device_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/plan/random_plan.h"

namespace planwright {
namespace {

using nlohmann::ordered_json;

DeviceProfile Small() {
  return {.gpu = "h200_sxm",
          .device = "NVIDIA H200",
          .driver = "570.124.06",
          .libraries = "LibTorch 2.11.0, CUDA 12.8, NCCL 2.27.5",
          .tool = "0.1.0",
          .hosts = "1 host, 192 cores, 2164 GB",
          .date = "2026-11-24",
          .compute = {{OpKind::kLinear, DType::kBf16, 2e9, 3e6, "[8,8] -> [8,8]", {1e-4, 9e-5, 1.5e-4, 40}}},
          .communication = {{OpKind::kAllReduce, 4096, 8, 4, 2, {2e-5, 2e-5, 3e-5, 7}}},
          .launch = {{OpKind::kLinear, {1e-5, 9e-6, 2e-5, 40}}},
          .beside = {{OpKind::kLinear, {0.5, 0.25, 0.75, 12}}},
          .skew = {{OpKind::kExperts, 2, {1.25, 1, 1.5, 40}}},
          .scaled_from = "h200_sxm.json of 2026-11-20",
          .scaled_by = {{"products", 1.2, 0.9, 1.1, 12}}};
}

TEST(DeviceProfile, RoundTripsInEveryField) {
  std::mt19937 random(5);
  for (int i = 0; i < 50; ++i) {
    DeviceProfile profile;
    RandomFill fill(random);
    Describe(fill, profile);
    profile.format_version = kProfileFormatVersion;
    const std::string text = WriteProfile(profile);
    const absl::StatusOr<DeviceProfile> read = ReadProfile(text);
    ASSERT_TRUE(read.ok()) << read.status() << "\n" << text;
    EXPECT_EQ(*read, profile);
    EXPECT_EQ(WriteProfile(*read), text);
  }
}

TEST(DeviceProfile, HasOnePointALine) {
  const std::string text = WriteProfile(Small());
  EXPECT_THAT(text, ::testing::HasSubstr(R"(
  {"op":"linear","dtype":"bf16","flops":2000000000.0,"bytes":3000000.0,"sizes":"[8,8] -> [8,8]",)"
                                         R"("seconds":{"median":0.0001,"low":9e-05,"high":0.00015,"repetitions":40}}
 ])"));
  EXPECT_TRUE(text.starts_with("{\n \"format_version\": 1,\n \"gpu\": \"h200_sxm\",\n")) << text;
}

struct Damage {
  const char* name;
  void (*damage)(ordered_json&);
  std::string message;
  friend void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }
};

class Damaged : public ::testing::TestWithParam<Damage> {};

TEST_P(Damaged, IsRefusedWithItsPlace) {
  ordered_json json = ordered_json::parse(WriteProfile(Small()));
  GetParam().damage(json);
  EXPECT_EQ(ReadProfile(json.dump()).status().message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Profiles, Damaged,
    ::testing::Values(
        Damage{"no_object", [](ordered_json& p) { p = ordered_json::array(); },
               "not a profile: it has no format_version"},
        Damage{"no_version", [](ordered_json& p) { p.erase("format_version"); },
               "not a profile: it has no format_version"},
        Damage{
            "another_version", [](ordered_json& p) { p["format_version"] = 2; },
            std::string("the profile has format_version 2; this version of Planwright (") + kToolVersion + ") reads 1"},
        Damage{"no_device", [](ordered_json& p) { p.erase("device"); }, "device: the field is missing"},
        Damage{"no_gpu", [](ordered_json& p) { p["gpu"] = ""; }, "gpu: the word is empty"},
        Damage{"control_character", [](ordered_json& p) { p["device"] = "a\nb"; },
               "device: the text has a control character"},
        Damage{"unknown_field", [](ordered_json& p) { p["color"] = 1; }, "color: a profile has no such field"},
        Damage{"compute_is_no_list", [](ordered_json& p) { p["compute"] = 3; },
               "compute: expected a list, found number"},
        Damage{"unknown_op", [](ordered_json& p) { p["compute"][0]["op"] = "liner"; },
               "compute[0].op: no op: \"liner\""},
        Damage{"unknown_dtype", [](ordered_json& p) { p["compute"][0]["dtype"] = "fp8"; },
               "compute[0].dtype: no dtype: \"fp8\""},
        Damage{"negative_flops", [](ordered_json& p) { p["compute"][0]["flops"] = -1; },
               "compute[0]: a number out of range: compute.flops"},
        Damage{"no_size", [](ordered_json& p) { p["compute"][0]["flops"] = p["compute"][0]["bytes"] = 0; },
               "compute[0]: neither flops nor bytes, so no rate"},
        Damage{"no_time", [](ordered_json& p) { p["compute"][0]["seconds"]["median"] = 0; },
               "compute[0].seconds: a number out of range: seconds.median"},
        Damage{"quartiles_swapped", [](ordered_json& p) { p["compute"][0]["seconds"]["low"] = 1; },
               "compute[0].seconds: a median that is not between its quartiles"},
        Damage{"no_repetitions", [](ordered_json& p) { p["launch"][0]["seconds"]["repetitions"] = 0; },
               "launch[0].seconds: repetitions below 1"},
        Damage{"seconds_as_text", [](ordered_json& p) { p["compute"][0]["seconds"]["high"] = "1 ms"; },
               "compute[0].seconds.high: expected a number, found string"},
        Damage{"no_ranks", [](ordered_json& p) { p["compute"][0]["ranks"] = 0; }, "compute[0]: ranks below 1"},
        Damage{"scaled_down_below_zero", [](ordered_json& p) { p["communication"][0]["scaled"] = -1; },
               "communication[0]: a number out of range: communication.scaled"},
        Damage{"faster_beside_another", [](ordered_json& p) { p["beside"][0]["speed"]["high"] = 1.5; },
               "beside[0]: a speed above 1"},
        Damage{"not_the_fullest", [](ordered_json& p) { p["skew"][0]["fullest"] = 1; },
               "skew[0]: a number out of range: skew.fullest"},
        Damage{"scaled_by_nothing", [](ordered_json& p) { p["scaled_by"][0]["factor"] = 0; },
               "scaled_by[0]: a number out of range: scaled_by.factor"},
        Damage{"quartiles_of_uses_swapped", [](ordered_json& p) { p["scaled_by"][0]["low"] = 1.15; },
               "scaled_by[0]: a low quartile above the high one"},
        Damage{"scaled_by_no_use", [](ordered_json& p) { p["scaled_by"][0]["count"] = 0; },
               "scaled_by[0]: a count below 1"},
        Damage{"in_no_time", [](ordered_json& p) { p["compute"][0]["seconds"]["median"] = 1e-308; },
               "compute[0].seconds: a number out of range: seconds.median"},
        Damage{"for_ever", [](ordered_json& p) { p["compute"][0]["seconds"]["high"] = 1e308; },
               "compute[0].seconds: a number out of range: seconds.high"},
        Damage{"of_nearly_nothing", [](ordered_json& p) { p["compute"][0]["flops"] = 5e-324; },
               "compute[0]: a number out of range: compute.flops"},
        Damage{"of_endless_bytes", [](ordered_json& p) { p["compute"][0]["bytes"] = 1e308; },
               "compute[0]: a number out of range: compute.bytes"},
        Damage{"alone", [](ordered_json& p) { p["communication"][0]["members"] = 1; },
               "communication[0]: fewer than 2 members"},
        Damage{"too_few_nodes", [](ordered_json& p) { p["communication"][0]["nodes"] = 1; },
               "communication[0]: members that do not fit on their nodes"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(DeviceProfile, IsCutOff) {
  const std::string text = WriteProfile(Small());
  for (size_t length : {size_t{0}, text.size() / 2, text.size() - 2}) {
    const absl::Status status = ReadProfile(text.substr(0, length)).status();
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("not a profile: ")) << length;
  }
}

}  // namespace
}  // namespace planwright
