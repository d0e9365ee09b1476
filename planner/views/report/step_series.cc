#include "planner/views/report/step_series.h"

#include <algorithm>
#include <cmath>

namespace planwright {
namespace {

// Where a number of [first, last] lies in [0, steps - 1], rounded up.
int64_t ScaledTo(int64_t number, int64_t first, int64_t last, int64_t steps) {
  if (number <= first || last <= first) return 0;
  const double part = static_cast<double>(number - first) / static_cast<double>(last - first);
  return std::min(steps - 1, static_cast<int64_t>(std::ceil(part * static_cast<double>(steps - 1))));
}

}  // namespace

void Spread::Add(const Spread& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  least = std::min(least, other.least), most = std::max(most, other.most);
  count += other.count;
  mean += (other.mean - mean) * (static_cast<double>(other.count) / static_cast<double>(count));
}

void StepBin::Add(const StepBin& next) {
  steps += next.steps;
  last_step = next.last_step, last_samples = next.last_samples;
  loss.Add(next.loss), grad_norm.Add(next.grad_norm);
  learning_rate.Add(next.learning_rate), samples_per_second.Add(next.samples_per_second);
  if (source_losses.size() < next.source_losses.size()) source_losses.resize(next.source_losses.size());
  for (size_t i = 0; i < next.source_losses.size(); ++i) source_losses[i].Add(next.source_losses[i]);
}

void StepSeries::AddSources(const StepPoint& point, StepBin& bin) {
  for (const auto& [name, loss] : point.source_losses) {
    auto at = std::find(sources_.begin(), sources_.end(), name);
    if (at == sources_.end()) {
      if (sources_.size() == kMostSources) continue;
      at = sources_.insert(at, name);
    }
    const auto index = static_cast<size_t>(at - sources_.begin());
    if (bin.source_losses.size() <= index) bin.source_losses.resize(index + 1);
    if (loss) bin.source_losses[index].Add(*loss);
  }
}

void StepSeries::Add(const StepPoint& point) {
  const bool follows = size_ > 0 && back().step + 1 == point.step;
  // All steps before the first one that is known had as many samples as that one.
  samples_of_last_ = follows ? point.samples - back().samples : point.samples / point.step;
  StepBin bin{.first = size_,
              .steps = 1,
              .first_step = point.step,
              .last_step = point.step,
              .first_samples = point.samples,
              .last_samples = point.samples};
  if (point.loss) bin.loss.Add(*point.loss);
  if (point.grad_norm) bin.grad_norm.Add(*point.grad_norm);
  if (point.learning_rate) bin.learning_rate.Add(*point.learning_rate);
  if (point.seconds > 0) bin.samples_per_second.Add(static_cast<double>(samples_of_last_) / point.seconds);
  AddSources(point, bin);
  AddToBins(bin);
  if (point.skipped) {
    ++skipped_;
    if (first_skipped_.size() < kMostSkipped) first_skipped_.emplace_back(size_, point.step);
  }
  seconds_ += point.seconds;
  if (point.data_wait) data_wait_ = data_wait_.value_or(0) + *point.data_wait;
  if (size_++ == 0) front_ = point;
  last_.push_back(point);
  if (last_.size() > kLastSteps) last_.pop_front();
}

void StepSeries::AddToBins(const StepBin& bin) {
  if (!bins_.empty() && bins_.back().steps < steps_of_bin_) return bins_.back().Add(bin);
  if (bins_.size() == kMostBins) {
    for (size_t i = 0; i < kMostBins / 2; ++i) {
      bins_[i] = bins_[2 * i];
      bins_[i].Add(bins_[2 * i + 1]);
    }
    bins_.resize(kMostBins / 2);
    steps_of_bin_ *= 2;
  }
  bins_.push_back(bin);
}

std::optional<int64_t> StepSeries::IndexOfStep(int64_t step) const {
  for (const StepBin& bin : bins_) {
    if (bin.first_step <= step && step <= bin.last_step)
      return bin.first + ScaledTo(step, bin.first_step, bin.last_step, bin.steps);
  }
  return std::nullopt;
}

int64_t StepSeries::IndexOfSamples(int64_t samples) const {
  const auto bin = std::lower_bound(bins_.begin(), bins_.end(), samples,
                                    [](const StepBin& one, int64_t wanted) { return one.last_samples < wanted; });
  if (bin == bins_.end()) return size_;
  return bin->first + ScaledTo(samples, bin->first_samples, bin->last_samples, bin->steps);
}

std::optional<int64_t> StepSeries::FindSamples(int64_t samples) const {
  const auto bin = std::lower_bound(bins_.begin(), bins_.end(), samples,
                                    [](const StepBin& one, int64_t wanted) { return one.last_samples < wanted; });
  if (bin == bins_.end() || samples < bin->first_samples) return std::nullopt;
  return bin->first + ScaledTo(samples, bin->first_samples, bin->last_samples, bin->steps);
}

int64_t StepSeries::StepAt(int64_t index) const {
  const auto bin = std::upper_bound(bins_.begin(), bins_.end(), index,
                                    [](int64_t wanted, const StepBin& one) { return wanted < one.first; });
  if (bin == bins_.begin()) return 0;
  const StepBin& of = *std::prev(bin);
  return std::min(of.last_step, of.first_step + (index - of.first));
}

void DroppedSteps::Add(const StepPoint& point) {
  if (count_++ == 0) front_ = point;
  back_ = point;
  seconds_ += point.seconds;
}

void EvenChoice::Add(const StepPoint& point) {
  if (seen_++ % distance_ != 0) return;
  points_.push_back(point);
  if (points_.size() <= kMost) return;
  for (size_t i = 0; 2 * i < points_.size(); ++i) points_[i] = points_[2 * i];
  points_.resize((points_.size() + 1) / 2);
  distance_ *= 2;
}

}  // namespace planwright
