// What memory and times of a plan take a sample for: what the index has counted, or full of images and one document
// (docs/training/data.md#counted).
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "planner/plan/plan.h"

namespace planwright {

// A sentence; empty where samples have no images, or are drawn.
std::string ImagesText(const Plan& plan);

// A sentence on how many of a sample's scores attention computes; empty where documents see each other.
std::string DocumentsText(const Plan& plan);

// A sentence on what times leave out of images that a run reads and resizes; empty where it reads none.
std::string PicturesText(const Plan& plan);

// By encoder: whether images are known, how many a step has, their patches, and the most of a sample.
nlohmann::ordered_json ImagesJson(const Plan& plan);

// Whether documents are known, how many a sample has, and which share of its scores attention computes.
nlohmann::ordered_json DocumentsJson(const Plan& plan);

}  // namespace planwright
