// Numbers of a model in a recipe that is built in code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "planner/recipe/model_facts.h"

namespace planwright {

struct ModelNumber {
  ModelNumber(std::string its_name, int64_t number, Location its_place = {})
      : name(std::move(its_name)), value(number), place(std::move(its_place)) {}
  ModelNumber(std::string its_name, int number, Location its_place = {})
      : ModelNumber(std::move(its_name), int64_t{number}, std::move(its_place)) {}
  ModelNumber(std::string its_name, double number, Location its_place = {})
      : name(std::move(its_name)), value(number), place(std::move(its_place)) {}

  std::string name;  // of a constant, or of a key that is none
  Attribute value;
  Location place;
};

// A number without a place keeps the one that the model has.
inline void Give(ModelRecipe& model, std::initializer_list<ModelNumber> numbers) {
  for (const ModelNumber& number : numbers) {
    const auto& keys = StatementOfModel(model).keys;
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const StatedKey& each) {
      return (each.form == StatedKey::Form::kChoice ? each.sets : each.name) == number.name;
    });
    const bool real = std::holds_alternative<double>(number.value);
    if (key == keys.end() || real != (key->type == StatedKey::Type::kReal))
      throw std::invalid_argument("the kind has no such number: " + number.name);
    Located<Attribute>& its = model.numbers[number.name];
    its = {number.value, number.place.known() ? number.place : its.where};
  }
}

}  // namespace planwright
