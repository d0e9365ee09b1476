#include "executor/exchange.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace planwright::executor {
namespace {

// A part with what is needed to find a sample's rows in its value.
struct Side {
  const ExchangePart* part = nullptr;
  const std::vector<Transfer>* transfers = nullptr;
  LaneSamples lane;                // of this rank, within the microbatch's block
  std::vector<int64_t> first_row;  // of each sample of the lane, and the end
  at::Tensor value;

  at::Tensor rows(int64_t first_sample, int64_t end_sample) const {
    TORCH_CHECK(first_sample >= lane.first && end_sample <= lane.end, "samples [", first_sample, ", ", end_sample,
                ") are not of this rank's lane [", lane.first, ", ", lane.end, ")");
    const int64_t first = first_row[first_sample - lane.first];
    return value.narrow(0, first, first_row[end_sample - lane.first] - first);
  }
};

Side MakeSide(const ExchangePart& part, const Instruction& instruction, const Values& values, const Rank& rank) {
  const Bridge* bridge = rank.plan.FindBridge(part.bridge);
  TORCH_CHECK(bridge != nullptr, "no bridge ", part.bridge);
  const Module* module = rank.plan.FindModule(part.send != part.backward ? bridge->from : bridge->to);
  const Budget& budget = rank.plan.budget;
  Side side{.part = &part, .transfers = part.backward ? &bridge->backward : &bridge->forward};
  side.lane = SamplesOfLane(budget.block_samples, module->grid.dp,
                            CoordinateOf(module->grid, rank.rank, Axis::kDp));
  const at::Tensor counts = values.Get(part.sample_rows).cpu().contiguous();
  TORCH_CHECK(counts.numel() == side.lane.end - side.lane.first, counts.numel(), " row counts for ",
              side.lane.end - side.lane.first, " samples of the lane");
  side.first_row = {0};
  for (int64_t i = 0; i < counts.numel(); ++i) side.first_row.push_back(side.first_row.back() + counts.const_data_ptr<int64_t>()[i]);
  if (part.send) {
    side.value = values.Get(part.value).contiguous();
    TORCH_CHECK(side.value.size(0) == side.first_row.back(), part.value, " has ", side.value.size(0), " rows, its samples ",
                side.first_row.back());
    return side;
  }
  const auto output = std::find_if(instruction.outputs.begin(), instruction.outputs.end(),
                                   [&](const Output& candidate) { return candidate.name == part.value; });
  TORCH_CHECK(output != instruction.outputs.end(), "received value ", part.value, " is not an output");
  std::vector<int64_t> shape = {side.first_row.back()};
  for (size_t i = 1; i < output->type.dims.size(); ++i) shape.push_back(std::get<int64_t>(output->type.dims[i]));
  side.value = at::empty(shape, at::TensorOptions(rank.device).dtype(ScalarTypeOf(output->type.dtype)));
  return side;
}

// Messages and copies of one exchange.
class Mail {
 public:
  explicit Mail(Rank& rank) : rank_(rank) {}

  void Add(const Side& side) {
    int64_t samples = 0;
    for (const Transfer& transfer : *side.transfers) {
      if ((side.part->send ? transfer.from_rank : transfer.to_rank) != rank_.rank) continue;
      samples += transfer.end_sample - transfer.first_sample;
      const at::Tensor rows = side.rows(transfer.first_sample, transfer.end_sample);
      const int peer = side.part->send ? transfer.to_rank : transfer.from_rank;
      if (rows.numel() == 0) continue;
      if (peer == rank_.rank) {
        Keep(side, transfer, rows);
      } else {
        Post(side, peer, rows);
      }
    }
    TORCH_CHECK(side.part->send || samples == side.lane.end - side.lane.first, "the bridge brings ", samples, " samples of ",
                side.lane.end - side.lane.first);
  }

  void Deliver() {
    for (auto& [key, copy] : copies_) {
      TORCH_CHECK(copy.from.defined() && copy.to.defined(), "a transfer to the rank itself has one end only");
      copy.to.copy_(copy.from);
    }
    if (!messages_.empty()) messages_[0].communicator->Exchange(messages_);
  }

 private:
  struct Copy {
    at::Tensor from, to;
  };

  void Keep(const Side& side, const Transfer& transfer, const at::Tensor& rows) {
    Copy& copy = copies_[{side.part->bridge, side.part->backward, transfer.first_sample}];
    (side.part->send ? copy.from : copy.to) = rows;
  }

  void Post(const Side& side, int peer, const at::Tensor& rows) {
    const Bridge& bridge = *rank_.plan.FindBridge(side.part->bridge);
    Communicator* group = rank_.communicators.Find("bridge." + bridge.from + "." + bridge.to);
    TORCH_CHECK(group != nullptr, "rank ", rank_.rank, " is not in the communicator of bridge ", bridge.name);
    const auto at = std::find(group->ranks().begin(), group->ranks().end(), peer);
    TORCH_CHECK(at != group->ranks().end(), "rank ", peer, " is not in the communicator of bridge ", bridge.name);
    messages_.push_back({group, static_cast<int>(at - group->ranks().begin()), side.part->send, rows});
  }

  Rank& rank_;
  std::vector<Message> messages_;
  std::map<std::tuple<std::string, bool, int64_t>, Copy> copies_;
};

}  // namespace

Tensors RunExchange(const Instruction& instruction, const Values& values, Rank& rank) {
  std::vector<Side> sides;
  for (const ExchangePart& part : instruction.parts) sides.push_back(MakeSide(part, instruction, values, rank));
  Mail mail(rank);
  for (const Side& side : sides) mail.Add(side);
  mail.Deliver();
  Tensors outputs;
  for (const Output& output : instruction.outputs) {
    for (const Side& side : sides) {
      if (!side.part->send && side.part->value == output.name) outputs.push_back(side.value);
    }
  }
  return outputs;
}

}  // namespace planwright::executor
