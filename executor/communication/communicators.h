// The live communicators of a rank: one for each used group of two or more ranks it is in, made in plan order.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "executor/communication/communicator.h"
#include "planner/plan/plan.h"

namespace c10d {
class Store;
}

namespace planwright::executor {

enum class Backend { kGloo, kNccl };

class Communicators {
 public:
  // Every rank calls it; creation order is the plan's on all of them, so no two ranks wait for each other in different groups.
  // Keys in `store` start with `nonce`, which no other run shares.
  static Communicators Make(const Plan& plan, int rank, Backend backend, const c10::intrusive_ptr<c10d::Store>& store,
                            const std::string& nonce, const std::string& address, std::chrono::milliseconds timeout);

  // Null if this rank is alone in the group, or in none.
  Communicator* Find(const std::string& group) const;

 private:
  std::map<std::string, std::unique_ptr<Communicator>> groups_;
};

}  // namespace planwright::executor
