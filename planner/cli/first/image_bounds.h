// The least and the most pixels of images that are resized, as the settings of an image processor have them. Recipes
// say them in patches.
#pragma once

#include "planner/cli/first/image_processor.h"
#include "planner/cli/first/processor_settings.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// `into` has what holds without the settings, and its rule of sizes is not that of squares. `asked`: as
// ReadImageProcessor.
void ReadImageBounds(ProcessorSettings& settings, const EncoderSizes& encoder, const YamlNode& asked,
                     ImageProcessor& into);

}  // namespace planwright
