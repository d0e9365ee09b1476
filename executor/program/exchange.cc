#include "executor/program/exchange.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <memory>

#include "planner/plan/image_bands.h"

namespace planwright::executor {
namespace {

// The first row of each sample of the lane, and behind them the number of all rows.
std::vector<int64_t> FirstRows(const at::Tensor& counts, int64_t samples) {
  TORCH_CHECK(counts.numel() == samples, counts.numel(), " row counts for the ", samples, " samples of this lane");
  const at::Tensor host = counts.cpu().contiguous();
  std::vector<int64_t> rows = {0};
  for (int64_t i = 0; i < samples; ++i) rows.push_back(rows.back() + host.const_data_ptr<int64_t>()[i]);
  return rows;
}

// The rows of a value that comes from another stage. `image_rows`: it has one for each image token. Those of a language
// model are counted by sample. An encoder's rank has a part of its lane: of patches and class tokens
// (docs/model/vision_encoder.md#class-tokens), or of the image tokens that patches make.
int64_t ReceivedRows(const CallContext& coordinates, bool image_rows, const at::Tensor& sizes) {
  if (coordinates.module->carries_loss) return sizes.sum().item<int64_t>();
  const auto grid = sizes.accessor<int64_t, 2>();
  std::vector<std::array<int64_t, 2>> grids;
  for (int64_t i = 0; i < grid.size(0); ++i) grids.push_back({grid[i][0], grid[i][1]});
  const int64_t side = coordinates.module->size("pixel_shuffle");
  int64_t patches = 0, class_tokens = 0;
  const auto parts = DealBands(grids, side, coordinates.cp);
  for (const ImageRows& rows : parts.at(coordinates.cp_rank)) {
    patches += rows.count * grids[rows.image][1];
    if (rows.has_class_tokens()) class_tokens += coordinates.module->size("class_tokens");
  }
  return image_rows ? patches / (side * side) : patches + class_tokens;
}

// The planned type of the value that `part` receives; `index` gets its index among the outputs.
const ValueType& ReceivedType(const ExchangePart& part, const Instruction& instruction, size_t& index) {
  const auto output = std::find_if(instruction.outputs.begin(), instruction.outputs.end(),
                                   [&](const Output& candidate) { return candidate.name == part.value; });
  TORCH_CHECK(output != instruction.outputs.end(), "the exchange receives ", part.value,
              ", which is not among its outputs");
  index = static_cast<size_t>(output - instruction.outputs.begin());
  return output->type;
}

}  // namespace

Exchange::Exchange(const Instruction& instruction, const Rank& rank)
    : outputs_(instruction.outputs.size()), device_(rank.device) {
  for (const ExchangePart& part : instruction.parts) {
    parts_.push_back(part.shift == 0 ? BindOverBridge(part, instruction, rank)
                                     : BindBetweenStages(part, instruction, rank));
  }
  BindCopies();
}

Exchange::BoundPart Exchange::BindOverBridge(const ExchangePart& part, const Instruction& instruction,
                                             const Rank& rank) {
  const Bridge* bridge = rank.plan.FindBridge(part.bridge);
  TORCH_CHECK(bridge != nullptr, "no bridge ", part.bridge);
  // The end of the bridge that this rank is on in this part: gradients flow from `to` back to `from`.
  const Module* module = rank.plan.FindModule(part.send != part.backward ? bridge->from : bridge->to);
  const LaneSamples lane =
      SamplesOfLane(rank.plan.budget.block_samples, module->grid.dp, CoordinateOf(module->grid, rank.rank, Axis::kDp));
  Communicator* group = rank.communicators.Find(bridge->name, instruction.stream);
  BoundPart bound{.part = &part, .samples = lane.end - lane.first};
  int64_t samples = 0;
  for (const Transfer& transfer : part.backward ? bridge->backward : bridge->forward) {
    if ((part.send ? transfer.from_rank : transfer.to_rank) != rank.rank) continue;
    TORCH_CHECK(transfer.first_sample >= lane.first && transfer.end_sample <= lane.end, "samples [",
                transfer.first_sample, ", ", transfer.end_sample, ") of bridge ", bridge->name,
                " are outside this rank's lane [", lane.first, ", ", lane.end, ")");
    samples += transfer.end_sample - transfer.first_sample;
    BoundTransfer& mine = bound.transfers.emplace_back(
        BoundTransfer{transfer.first_sample - lane.first, transfer.end_sample - lane.first});
    const int peer = part.send ? transfer.to_rank : transfer.from_rank;
    if (peer == rank.rank) continue;
    TORCH_CHECK(group != nullptr, "rank ", rank.rank, " is not in the communicator of bridge ", bridge->name);
    const auto at = std::find(group->ranks().begin(), group->ranks().end(), peer);
    TORCH_CHECK(at != group->ranks().end(), "rank ", peer, " is not in the communicator of bridge ", bridge->name);
    mine.communicator = group;
    mine.peer = static_cast<int>(at - group->ranks().begin());
  }
  if (part.send) return bound;
  TORCH_CHECK(samples == bound.samples, "bridge ", bridge->name, " brings ", samples, " samples to a lane of ",
              bound.samples);
  BindReceived(part, instruction, bound);
  return bound;
}

// The ranks of a pp group are in the order of their stages.
Exchange::BoundPart Exchange::BindBetweenStages(const ExchangePart& part, const Instruction& instruction,
                                                const Rank& rank) {
  Communicator* group = rank.communicators.Find(part.group, instruction.stream);
  TORCH_CHECK(group != nullptr, "rank ", rank.rank, " is not in communicator ", part.group);
  const int peer = group->index() + part.shift;
  TORCH_CHECK(peer >= 0 && peer < group->size(), "there is no stage ", peer, " in ", part.group);
  const Module* module = rank.plan.FindModule(rank.plan.FindGroup(part.group)->module);
  BoundPart bound{.part = &part, .coordinates = rank.Context(module, "", -1)};
  bound.transfers.push_back({0, 1, group, peer});
  if (!part.send) BindReceived(part, instruction, bound);
  return bound;
}

void Exchange::BindReceived(const ExchangePart& part, const Instruction& instruction, BoundPart& bound) {
  const ValueType& type = ReceivedType(part, instruction, bound.output);
  if (const int64_t* rows = std::get_if<int64_t>(&type.dims[0])) {
    bound.planned_rows = *rows;
  } else {
    bound.image_rows = std::get<std::string>(type.dims[0]).ends_with("image_rows");
  }
  for (size_t i = 1; i < type.dims.size(); ++i) bound.row_shape.push_back(std::get<int64_t>(type.dims[i]));
  bound.dtype = ScalarTypeOf(type.dtype);
}

std::vector<int64_t> Exchange::FirstRowsOf(const BoundPart& part, const at::Tensor& sent,
                                           const at::Tensor& sizes) const {
  if (part.part->shift == 0) return FirstRows(sizes, part.samples);
  if (part.part->send) return {0, sent.size(0)};
  return {0, part.planned_rows >= 0 ? part.planned_rows : ReceivedRows(part.coordinates, part.image_rows, sizes)};
}

// Finds the sending end of each transfer from this rank to itself (docs/layouts/bridges.md#colocated). The bridge lists
// such transfers in the same order for both ends, so the n-th one received is the n-th one sent.
void Exchange::BindCopies() {
  for (BoundPart& to : parts_) {
    if (to.part->send) continue;
    size_t copies = 0;
    for (BoundTransfer& received : to.transfers) {
      if (received.communicator != nullptr) continue;
      bool found = false;
      for (size_t p = 0; p < parts_.size() && !found; ++p) {
        const BoundPart& from = parts_[p];
        if (!from.part->send || from.part->bridge != to.part->bridge || from.part->backward != to.part->backward)
          continue;
        size_t copy = 0;
        for (size_t t = 0; t < from.transfers.size() && !found; ++t) {
          if (from.transfers[t].communicator != nullptr || copy++ != copies) continue;
          received.from_part = p, received.from_transfer = t, found = true;
        }
      }
      TORCH_CHECK(found, "bridge ", to.part->bridge,
                  " has a transfer from this rank to itself that no part of the exchange sends");
      ++copies;
    }
  }
}

Tensors Exchange::Run(const Tensors& sent, const Tensors& sizes) const {
  Tensors values(parts_.size()), outputs(outputs_);
  std::vector<std::vector<int64_t>> first_rows(parts_.size());
  for (size_t p = 0; p < parts_.size(); ++p) {
    const BoundPart& part = parts_[p];
    first_rows[p] = FirstRowsOf(part, sent[p], sizes[p]);
    const int64_t rows = first_rows[p].back();
    if (part.part->send) {
      values[p] = sent[p].contiguous();
      TORCH_CHECK(values[p].size(0) == rows, part.part->value, " has ", values[p].size(0), " rows, its samples have ",
                  rows);
      continue;
    }
    std::vector<int64_t> shape = {rows};
    shape.insert(shape.end(), part.row_shape.begin(), part.row_shape.end());
    values[p] = outputs[part.output] = at::empty(shape, at::TensorOptions(device_).dtype(part.dtype));
  }
  const auto rows_of = [&](size_t p, const BoundTransfer& transfer) {
    const int64_t first = first_rows[p][transfer.first];
    return values[p].narrow(0, first, first_rows[p][transfer.end] - first);
  };
  // All messages of the instruction are handed over together. One after another, two ranks that both send first could
  // wait for each other.
  std::vector<Message> messages;
  for (size_t p = 0; p < parts_.size(); ++p) {
    for (const BoundTransfer& transfer : parts_[p].transfers) {
      const at::Tensor rows = rows_of(p, transfer);
      if (rows.numel() == 0) continue;
      if (transfer.communicator != nullptr) {
        messages.push_back({transfer.communicator, transfer.peer, parts_[p].part->send, rows});
      } else if (!parts_[p].part->send) {
        rows.copy_(rows_of(transfer.from_part, parts_[transfer.from_part].transfers[transfer.from_transfer]));
      }
    }
  }
  if (!messages.empty()) messages[0].communicator->Exchange(messages);
  return outputs;
}

Action BindExchange(const LinkedInstruction& instruction, const Rank& rank) {
  const auto exchange = std::make_shared<const Exchange>(*instruction.source, rank);
  return [exchange](const ActionArguments& arguments) {
    const std::span<const ActionArguments::Part> parts = arguments.parts;
    Tensors sent(parts.size()), sizes(parts.size());
    for (size_t p = 0; p < parts.size(); ++p) {
      if (parts[p].value != nullptr) sent[p] = parts[p].value->tensor;
      if (parts[p].sizes != nullptr) sizes[p] = parts[p].sizes->OnHost();
    }
    return exchange->Run(sent, sizes);
  };
}

}  // namespace planwright::executor
