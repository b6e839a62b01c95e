// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The headers compile after headers that define common words as macros: those of Qt, X11, Windows' portability layers,
// C's complex numbers, device numbers and g++'s own in its GNU mode. `min` and `max` of Windows are left out, because the
// standard library does not compile with them either.

// Qt
#define slots
#define signals public
#define emit
#define forever for (;;)
#define foreach(variable, container) for (variable : container)

// X11
#define None 0L
#define Bool int
#define Status int
#define True 1
#define False 0
#define Success 0
#define Always 2
#define Above 0
#define Below 1
#define Complex 0
#define Convex 2
#define Unsorted 0
#define CurrentTime 0L
#define KeyPress 2
#define Expose 12

// Windows
#define near
#define far
#define small char
#define hyper long long
#define interface struct
#define pascal
#define cdecl
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#define VOID void
#define TRUE 1
#define FALSE 0
#define ERROR 0
#define IGNORE 0
#define DELETE 1
#define STRICT 1
#define ABSOLUTE 1
#define RELATIVE 2
#define DIFFERENCE 11
#define NO_ERROR 0

// <complex.h>, <sys/sysmacros.h>, and g++ -std=gnu++20
#define I _Complex_I
#define major(device) gnu_dev_major(device)
#define minor(device) gnu_dev_minor(device)
#define linux 1
#define unix 1

#include <hocket/draw/plan_svg.hpp>
#include <hocket/draw/schedule_svg.hpp>
#include <hocket/group/adapted.hpp>
#include <hocket/parallel.hpp>
#include <hocket/sim.hpp>

#if __has_include(<ucp/api/ucp.h>)
#include <hocket/bootstrap/launch.hpp>
#include <hocket/collective/device/staged.hpp>
#include <hocket/ucx.hpp>
#endif
