// What both forms of the gradient of embed_tokens share: which row of this rank's part of the table a token has.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

struct EmbeddingRows {
  at::Tensor row;    // i64 [S,B]: row of this rank's part of the table
  at::Tensor valid;  // bool [S,B]: the row is in this part, and the token is no image token (image_token -1: none is)

  // tokens i64 [B,S]; this rank has `rows` rows of the table.
  EmbeddingRows(const ComputeContext& context, const at::Tensor& tokens, int64_t rows);
};

}  // namespace planwright::executor::ops
