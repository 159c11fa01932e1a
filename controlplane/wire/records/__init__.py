"""Records of streams: conversion to a schema, and the codec of blocks."""
