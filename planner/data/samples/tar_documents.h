// The documents of a webdataset source, by its index.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "planner/data/samples/documents.h"
#include "planner/data/samples/index_file.h"

namespace planwright {

// `base`: what relative paths of the index are relative to. `ids`: texts are .tok, with `image_token` where an image
// is; else they are bytes, and `end_token` is added. `turned`: images are turned as they say. `open_files`: that stay
// open.
struct TarDocumentsSettings {
  std::string base;
  bool ids = false;
  int64_t image_token = -1, end_token = -1;
  bool turned = false;
  size_t open_files = 1;
};
std::unique_ptr<Documents> MakeTarDocuments(IndexFile index, TarDocumentsSettings settings);

}  // namespace planwright
