#include "planner/cli/first/processor_types.h"

namespace planwright {
namespace {

// Of transformers 5.23.0. What is said of `default_to_square`: whether a size of one number is a square.
constexpr ProcessorType kProcessorTypes[] = {
    {"SiglipImageProcessor", "square", "half",
     R"({"resample": 3, "size": {"height": 224, "width": 224}, "default_to_square": false})"},
    {"ViTImageProcessor", "square", "half",
     R"({"resample": 2, "size": {"height": 224, "width": 224}, "default_to_square": true})"},
    {"DeiTImageProcessor", "square", "half",
     R"({"resample": 3, "size": {"height": 256, "width": 256}, "default_to_square": true,
         "do_center_crop": true, "crop_size": {"height": 224, "width": 224}})"},
    {"BlipImageProcessor", "square", "clip",
     R"({"resample": 3, "size": {"height": 384, "width": 384}, "default_to_square": true})"},
    {"CLIPImageProcessor", "square", "clip",
     R"({"resample": 3, "size": {"shortest_edge": 224},
         "default_to_square": false, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}})"},
    {"LlavaImageProcessor", "square", "clip",
     R"({"resample": 3, "size": {"shortest_edge": 224},
         "default_to_square": false, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}})"},
    {"Qwen2VLImageProcessor", "smart_resize", "clip",
     R"({"resample": 3, "size": {"shortest_edge": 3136, "longest_edge": 1003520},
         "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2})"},
};

}  // namespace

const ProcessorType* FindProcessorType(const std::string& name) {
  for (const ProcessorType& type : kProcessorTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

}  // namespace planwright
