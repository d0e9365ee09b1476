#include "tests/numerics/layouts.h"

namespace planwright::testing {
namespace {

constexpr char kTwo[] = "recipes/nemotron_moe_two_encoders_tiny.yaml";
constexpr char kCircle[] = "tests/numerics/recipes/two_encoders_circle.yaml";

std::vector<std::string> On(const std::string& module, int first_rank, int ranks, std::vector<AxisSize> axes = {}) {
  const std::string placement = "modules." + module + ".placement.";
  return Join({placement + "first_rank=" + std::to_string(first_rank), placement + "ranks=" + std::to_string(ranks)},
              Parallel(module, axes));
}

Layout Two(const char* name, const std::vector<std::string>& coarse, const std::vector<std::string>& fine,
           const std::vector<std::string>& language, std::vector<std::string> training = {}) {
  return {name, Join(coarse, fine, language), std::move(training), kTwo};
}

}  // namespace

std::vector<Layout> EncodersLayouts() {
  const auto coarse = [](int first, int ranks, std::vector<AxisSize> axes = {}) {
    return On("radio_encoder", first, ranks, std::move(axes));
  };
  const auto fine = [](int first, int ranks, std::vector<AxisSize> axes = {}) {
    return On("fine_encoder", first, ranks, std::move(axes));
  };
  const auto language = [](int first, int ranks, std::vector<AxisSize> axes = {}) {
    return On("language", first, ranks, std::move(axes));
  };
  const std::vector<std::string> frozen = {"modules.fine_encoder.train.backbone=frozen",
                                           "modules.fine_encoder.train.projection=frozen"};
  return {
      Two("two_encoders_apart", coarse(0, 1), fine(1, 1), language(2, 1)),
      Two("two_encoders_of_unequal_depth", coarse(0, 1), fine(1, 4, {{"pp", 4}}), language(5, 2, {{"pp", 2}})),
      Two("two_encoders_both_deep", coarse(0, 2, {{"pp", 2}}), fine(2, 4, {{"pp", 4}}), language(6, 1)),
      Two("two_encoders_dp2_tp2", coarse(0, 2), fine(2, 2, {{"tp", 2}}), language(4, 4, {{"tp", 2}, {"ep", 2}})),
      Two("two_encoders_uneven_lanes", coarse(0, 3), fine(3, 2), language(5, 4, {{"ep", 4}})),
      Two("two_encoders_colocated", coarse(0, 4), fine(0, 4, {{"tp", 2}}), language(0, 4, {{"tp", 2}, {"ep", 4}})),
      Two("two_encoders_colocated_on_2", coarse(0, 2), fine(0, 2, {{"tp", 2}}), language(0, 2, {{"ep", 2}})),
      Two("two_encoders_one_frozen", coarse(0, 1), fine(1, 2, {{"pp", 2}}), language(3, 2, {{"pp", 2}}), frozen),
      {"two_encoders_circle",
       {},
       {},
       kCircle,
       Join(On("encoder", 0, 1), On("audio", 0, 1, {{"pp", 1}}), On("language", 0, 1))},
  };
}

}  // namespace planwright::testing
