// RADIO's own code writes the arguments of its training into config.json: names of ViTs, teachers, multiples. This
// reads them, as no other dialect needs the like (`read by radio_arguments` in radio_vit.model).
#pragma once

#include "planner/exchange/config_keys.h"
#include "planner/exchange/said_model.h"

namespace planwright {

// Layers, hidden, heads, ffn, patch, class_tokens and max_image of the encoder.
void ReadRadioArguments(ConfigKeys& keys, SaidPart& encoder);

}  // namespace planwright
