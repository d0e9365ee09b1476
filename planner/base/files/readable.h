// Times and large numbers as people read them.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace planwright {

// "0.43 s", "12.4 s", "3 min 05 s", "2 h 14 min", "3 d 04 h"
std::string DurationText(double seconds);

// "2026-11-22 22:20:52", in the time zone of this machine
std::string ClockText(absl::Time time);

// "2026-11-22T22:20:52Z", for programs
std::string UtcText(absl::Time time);

// "45.8 thousand", "1.97 million": three digits
std::string LargeText(double number);

}  // namespace planwright
