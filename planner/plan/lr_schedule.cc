#include "planner/plan/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

constexpr double kPi = std::numbers::pi;

// wsd: the coefficient within the decay, of which the part q in [0, 1] has passed.
double WsdDecayCoefficient(const std::string& style, double q) {
  if (style == "linear") return 1.0 - q;
  if (style == "cosine") return 0.5 * (std::cos(kPi * q) + 1.0);
  if (style == "exponential") return (2.0 * std::pow(0.5, q)) - 1.0;
  if (style == "minus_sqrt") return 1.0 - std::sqrt(q);
  Bug("unknown wsd style " + style);
}

// Where the rate is between min (0) and peak (1), after warmup and up to decay_samples.
double Coefficient(const LearningRate& rate, double sample) {
  const double past_warmup = sample - rate.warmup_samples;
  const double part = past_warmup / (static_cast<double>(rate.decay_samples) - rate.warmup_samples);
  if (rate.style == "linear") return 1.0 - part;
  if (rate.style == "cosine") return 0.5 * (std::cos(kPi * part) + 1.0);
  if (rate.style == "wsd") {
    const double decay_begin = static_cast<double>(rate.decay_samples - rate.wsd_decay_samples);
    if (sample <= decay_begin) return 1.0;
    return WsdDecayCoefficient(rate.wsd_style, (sample - decay_begin) / static_cast<double>(rate.wsd_decay_samples));
  }
  Bug("unknown learning-rate style " + rate.style);
}

}  // namespace

double LearningRateAt(const LearningRate& rate, double sample) {
  if (rate.warmup_samples > 0 && sample <= rate.warmup_samples) {
    return rate.init + (rate.peak - rate.init) * sample / rate.warmup_samples;
  }
  if (rate.style == "constant") return rate.peak;  // also beyond decay_samples
  if (sample > static_cast<double>(rate.decay_samples)) return rate.min;
  // inverse_sqrt is the one style that need not be at `min` when the decay ends.
  if (rate.style == "inverse_sqrt") {
    const double warmup = std::max(rate.warmup_samples, 1.0), now = std::max(sample, 1.0);
    return std::max(rate.min, rate.peak * std::sqrt(warmup) / std::sqrt(now));
  }
  return rate.min + Coefficient(rate, sample) * (rate.peak - rate.min);
}

double WeightDecayAt(const WeightDecay& decay, double sample) {
  const double samples = static_cast<double>(decay.samples);
  if (sample > samples || decay.style == "constant") return decay.end;
  const double part = sample / samples;
  if (decay.style == "linear") return decay.start + part * (decay.end - decay.start);
  if (decay.style == "cosine")
    return decay.start + 0.5 * (std::cos(kPi * (1.0 - part)) + 1.0) * (decay.end - decay.start);
  Bug("unknown weight-decay style " + decay.style);
}

StepRates RatesAt(const Plan& plan, int part, double sample) {
  const LearningRate& rate = plan.budget.learning_rate;
  const WeightDecay& decay = plan.budget.weight_decay;
  StepRates rates = {LearningRateAt(rate, sample), WeightDecayAt(decay, sample)};
  if (part < 0) return rates;
  const RatePart& of = plan.optimizer.parts.at(static_cast<size_t>(part));
  // With a peak of 0 every rate is 0, of any factor.
  if (rate.peak > 0) rates.learning_rate *= of.learning_rate / rate.peak;
  rates.weight_decay = decay.start == decay.end ? of.weight_decay : rates.weight_decay * (of.weight_decay / decay.end);
  return rates;
}

}  // namespace planwright
