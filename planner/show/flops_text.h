// Floating-point operations and times as people read them.
#pragma once

#include <string>

namespace planwright {

// "75.78 TFLOP"
std::string FlopText(double flops);

// "7.31 s", "12.4 ms"
std::string SecondsText(double seconds);

}  // namespace planwright
