//! Scripts.
#![no_std]
