#include "executor/ops/rope_speeds.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace planwright::executor::ops {
namespace {

double Number(const Instruction& instruction, const char* name) { return instruction.real(name); }

// Llama 3: planes that turn slowly turn slower by the factor, those that turn fast as before, and between the two it
// goes over smoothly. `low` and `high` are turns within the context before.
double Llama3(const Instruction& instruction, double speed) {
  const double before = Number(instruction, "original"), factor = Number(instruction, "factor"),
               low = Number(instruction, "low"), high = Number(instruction, "high");
  const double turns = before * speed / (2 * std::numbers::pi);
  // Without a way between the two it goes over at once.
  const double share = high > low ? std::clamp((turns - low) / (high - low), 0.0, 1.0) : turns > low ? 1.0 : 0.0;
  return (1 - share) * speed / factor + share * speed;
}

}  // namespace

RopeSpeeds::RopeSpeeds(const Instruction& instruction) {
  const int64_t rotary = instruction.integer("rotary");
  const double theta = Number(instruction, "theta");
  const int64_t* kind = instruction.FindInteger("scaling");
  for (int64_t j = 0; j < rotary / 2; ++j) {
    const double speed = std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(rotary));
    if (kind == nullptr) {
      of.push_back(speed);
    } else if (*kind == 1) {  // linear
      of.push_back(speed / Number(instruction, "factor"));
    } else if (*kind == 2) {
      of.push_back(Llama3(instruction, speed));
    } else {
      TORCH_CHECK(*kind == 3, "no scaling of rotary embeddings has the number ", *kind);
      // YaRN: a ramp over the planes, from the one that turns `high` times within the context before to the one that
      // turns `low` times.
      const double before = Number(instruction, "original"), factor = Number(instruction, "factor");
      const auto plane = [&](double turns) {
        return static_cast<double>(rotary) * std::log(before / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
      };
      const double first = std::max(std::floor(plane(Number(instruction, "high"))), 0.0),
                   last = std::min(std::ceil(plane(Number(instruction, "low"))), static_cast<double>(rotary - 1));
      const double width = first == last ? 0.001 : last - first;
      const double slow = std::clamp((static_cast<double>(j) - first) / width, 0.0, 1.0);
      of.push_back(slow * speed / factor + (1 - slow) * speed);
    }
  }
  const auto planes_of = [&](const char* name) {
    const int64_t* planes = instruction.FindInteger(name);
    return planes == nullptr ? 0 : *planes;
  };
  const int64_t height = planes_of("height"), width = planes_of("width");
  several = height > 0 || width > 0;
  for (int64_t j = 0; j < rotary / 2; ++j)
    axis.push_back(j % 3 == 1 && j < 3 * height ? 1 : j % 3 == 2 && j < 3 * width ? 2 : 0);
  if (instruction.attributes.contains("amplitude")) amplitude = Number(instruction, "amplitude");
}

}  // namespace planwright::executor::ops
