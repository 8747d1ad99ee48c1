#ifndef RUNG_DEVICE_SHAPES_H
#define RUNG_DEVICE_SHAPES_H
#include "device/copies.h"
#include "device/end.h"
#include "device/fragments.h"
#include "device/marks.h"
#include "device/parts.h"
#include "families/small/end.h"
#endif
