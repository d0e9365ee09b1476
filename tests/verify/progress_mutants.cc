#include "tests/verify/progress_mutants.h"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"

namespace planwright::testing {
namespace {

using std::string;
using std::vector;

bool Communicates(const Instruction& instruction) { return OpClassOf(instruction.kind) == OpClass::kCommunication; }

class Damager {
 public:
  Damager(Plan plan, uint64_t seed) : plan_(std::move(plan)), random_(seed) {}

  Mutant Make() {
    using Way = bool (Damager::*)();
    static const std::map<string, Way> ways = {
        {"drop", &Damager::Drop},
        {"duplicate", &Damager::Duplicate},
        {"swap_neighbours", &Damager::Swap},
        {"retarget_group", &Damager::Retarget},
        {"change_dtype", &Damager::ChangeDType},
        {"change_shape", &Damager::ChangeShape},
        {"change_attribute", &Damager::ChangeAttribute},
        {"change_kind", &Damager::ChangeKind},
        {"change_shift", &Damager::ChangeShift},
        {"turn_part_round", &Damager::TurnPart},
        {"change_direction", &Damager::ChangeDirection},
        {"drop_part", &Damager::DropPart},
        {"duplicate_part", &Damager::DuplicatePart},
        {"swap_parts", &Damager::SwapParts},
        {"retarget_row", &Damager::RetargetRow},
        {"drop_row", &Damager::DropRow},
        {"move_rank", &Damager::MoveRank},
        {"wait_for_nobody", &Damager::WaitForNobody},
        {"wait_for_later", &Damager::WaitForLater},
        {"wait_in_a_circle", &Damager::WaitInACircle},
        {"signal_twice", &Damager::SignalTwice},
        {"unused_group", &Damager::UnuseGroup},
        {"another_stream", &Damager::AnotherStream},
    };
    auto way = ways.begin();
    std::advance(way, Pick(ways.size()));
    const bool damaged = (this->*way->second)();
    return {std::move(plan_), damaged ? way->first : ""};
  }

 private:
  size_t Pick(size_t count) { return random_() % count; }
  // The body of one list, or of one block, as a place to damage: of every role that calls the block, or of one role alone.
  vector<Instruction>* Body(const std::function<bool(const Instruction&)>& wanted) {
    if (plan_.roles.empty()) return nullptr;
    const size_t role = Pick(plan_.roles.size());
    const size_t draw = Pick(10);
    vector<Instruction>* body = draw == 0 ? &plan_.roles[role].setup : draw == 1 ? &plan_.roles[role].teardown : &plan_.roles[role].step;
    const bool alone = Pick(3) > 0;
    while (Pick(3) > 0) {
      vector<size_t> calls;
      for (size_t i = 0; i < body->size(); ++i) {
        if ((*body)[i].kind == OpKind::kCall) calls.push_back(i);
      }
      if (calls.empty()) break;
      Instruction& call = (*body)[calls[Pick(calls.size())]];
      size_t block = 0;
      while (plan_.blocks[block].name != call.block) ++block;
      if (alone) {  // a copy that only this call uses
        call.block += ".damaged";
        plan_.blocks.push_back(plan_.blocks[block]);
        plan_.blocks.back().name = call.block;
        block = plan_.blocks.size() - 1;
      }
      body = &plan_.blocks[block].body;
    }
    return std::any_of(body->begin(), body->end(), wanted) ? body : nullptr;
  }

  struct Found {
    vector<Instruction>* body = nullptr;
    size_t place = 0;
    Instruction& at() const { return (*body)[place]; }
    explicit operator bool() const { return body != nullptr; }
  };
  Found Find(const std::function<bool(const Instruction&)>& wanted) {
    vector<Instruction>* body = Body(wanted);
    if (!body) return {};
    vector<size_t> places;
    for (size_t i = 0; i < body->size(); ++i) {
      if (wanted((*body)[i])) places.push_back(i);
    }
    return {body, places[Pick(places.size())]};
  }

  static bool Collective(const Instruction& i) { return Communicates(i) && i.kind != OpKind::kExchange; }
  static bool HasOutput(const Instruction& i) { return Communicates(i) && !i.outputs.empty(); }
  static bool HasParts(const Instruction& i) { return !i.parts.empty(); }

  bool Drop() {
    const Found found = Find(Communicates);
    return found && (found.body->erase(found.body->begin() + found.place), true);
  }

  bool Duplicate() {
    const Found found = Find(Communicates);
    if (!found) return false;
    Instruction copy = found.at();
    copy.signals.clear();
    found.body->insert(found.body->begin() + found.place, copy);
    return true;
  }

  bool Swap() {
    const Found found = Find(Communicates);
    if (!found) return false;
    for (size_t other = found.place + 1; other < found.body->size(); ++other) {
      if (!Communicates((*found.body)[other]) && (*found.body)[other].kind != OpKind::kCall) continue;
      std::swap(found.at(), (*found.body)[other]);
      return true;
    }
    return false;
  }

  bool Retarget() {
    const Found found = Find(Collective);
    if (!found) return false;
    const Group& group = plan_.groups[Pick(plan_.groups.size())];
    if (!group.used || group.name == found.at().group) return false;
    found.at().group = group.name;
    return true;
  }

  bool ChangeDType() {
    const Found found = Find(HasOutput);
    return found && (found.at().outputs[Pick(found.at().outputs.size())].type.dtype = DType::kBf16, true);
  }

  bool ChangeShape() {
    const Found found = Find(HasOutput);
    if (!found) return false;
    ValueType& type = found.at().outputs[Pick(found.at().outputs.size())].type;
    if (type.dims.empty()) return false;
    type.dims[Pick(type.dims.size())] = int64_t{77};
    return true;
  }

  bool ChangeAttribute() {
    const Found found = Find([](const Instruction& i) { return Communicates(i) && !i.attributes.empty(); });
    if (!found) return false;
    for (auto& [key, value] : found.at().attributes) {
      if (auto* number = std::get_if<int64_t>(&value)) *number += Pick(2) ? 1 : 100;
      if (auto* word = std::get_if<string>(&value)) *word = "max";
    }
    return true;
  }

  bool ChangeKind() {
    const Found found = Find(Collective);
    if (!found || found.at().kind == OpKind::kBroadcast) return false;
    found.at().kind = found.at().kind == OpKind::kAllReduce ? OpKind::kReduceScatter : OpKind::kAllReduce;
    return true;
  }

  ExchangePart* Part() {
    const Found found = Find(HasParts);
    return found ? &found.at().parts[Pick(found.at().parts.size())] : nullptr;
  }

  bool ChangeShift() {
    ExchangePart* part = Part();
    if (!part || !part->bridge.empty()) return false;
    part->shift = Pick(2) ? -part->shift : 2 * part->shift;
    return true;
  }

  bool TurnPart() {
    ExchangePart* part = Part();
    return part && (part->send = !part->send, true);
  }

  bool ChangeDirection() {
    ExchangePart* part = Part();
    return part && (part->backward = !part->backward, true);
  }

  bool DropPart() {
    const Found found = Find(HasParts);
    return found && (found.at().parts.erase(found.at().parts.begin() + Pick(found.at().parts.size())), true);
  }

  bool DuplicatePart() {
    const Found found = Find(HasParts);
    return found && (found.at().parts.push_back(found.at().parts[Pick(found.at().parts.size())]), true);
  }

  bool SwapParts() {
    const Found found = Find([](const Instruction& i) { return i.parts.size() > 1; });
    return found && (std::swap(found.at().parts.front(), found.at().parts.back()), true);
  }

  vector<Transfer>* Table() {
    if (plan_.bridges.empty()) return nullptr;
    Bridge& bridge = plan_.bridges[Pick(plan_.bridges.size())];
    vector<Transfer>& table = Pick(2) ? bridge.forward : bridge.backward;
    return table.empty() ? nullptr : &table;
  }

  bool RetargetRow() {
    vector<Transfer>* table = Table();
    if (!table) return false;
    Transfer& row = (*table)[Pick(table->size())];
    (Pick(2) ? row.to_rank : row.from_rank) = static_cast<int>(Pick(plan_.world_size));
    return true;
  }

  bool DropRow() {
    vector<Transfer>* table = Table();
    return table && (table->erase(table->begin() + Pick(table->size())), true);
  }

  // A rank that does what others do.
  bool MoveRank() {
    const size_t from = Pick(plan_.roles.size()), to = Pick(plan_.roles.size());
    if (from == to) return false;
    vector<int> source = Expand(plan_.roles[from].ranks), target = Expand(plan_.roles[to].ranks);
    const size_t which = Pick(source.size());
    target.push_back(source[which]);
    source.erase(source.begin() + which);
    std::sort(target.begin(), target.end());
    plan_.roles[from].ranks = Compress(source);
    plan_.roles[to].ranks = Compress(target);
    return true;
  }

  bool WaitForNobody() {
    const Found found = Find(Communicates);
    return found && (found.at().waits.push_back("nobody"), true);
  }

  bool WaitForLater() {
    const Found found = Find(Communicates);
    if (!found) return false;
    for (size_t other = found.body->size() - 1; other > found.place; --other) {
      if (!Communicates((*found.body)[other])) continue;
      (*found.body)[other].signals.push_back("later");
      (*found.body)[other].stream = "other";
      found.at().waits.push_back("later");
      return true;
    }
    return false;
  }

  bool WaitInACircle() {
    const Found found = Find(Communicates);
    if (!found) return false;
    Instruction& other = (*found.body)[Pick(found.body->size())];
    found.at().waits.push_back("one");
    found.at().signals.push_back("two");
    found.at().stream = "other";
    other.waits.push_back("two");
    other.signals.push_back("one");
    return true;
  }

  bool SignalTwice() {
    const Found found = Find(Communicates);
    if (!found) return false;
    found.at().signals.push_back("twice");
    (*found.body)[Pick(found.body->size())].signals.push_back("twice");
    return true;
  }

  bool UnuseGroup() {
    Group& group = plan_.groups[Pick(plan_.groups.size())];
    const bool used = group.used;
    group.used = false;
    return used;
  }

  // Alone it takes nothing from the plan's progress: the order of launches stays.
  bool AnotherStream() {
    const Found found = Find(Communicates);
    return found && (found.at().stream = "other", true);
  }

  Plan plan_;
  std::mt19937_64 random_;
};

}  // namespace

Mutant DamageProgress(const Plan& sound, uint64_t seed) { return Damager(sound, seed).Make(); }

}  // namespace planwright::testing
