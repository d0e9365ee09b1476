// The image processors of transformers whose images recipes can have.
#pragma once

#include <string>

namespace planwright {

struct ProcessorType {
  const char* name;      // of the class, without the endings of its variants
  const char* grid;      // the word of data.grid for its rule of sizes
  const char* pixels;    // by what they are normalized (planner/plan/pixel_norm.h)
  const char* settings;  // others of a file that does not say them, as JSON
};

// Null: it is not known.
const ProcessorType* FindProcessorType(const std::string& name);

}  // namespace planwright
