#!/usr/bin/env node
import { runProgram } from './program.ts'

/**
 * `confidential-model-router <command> ...`, or `cmr` for short. In a checkout, `npm start` and `npm run
 * serve|admin|verify|release|image` are the same commands.
 */
await runProgram(process.argv.slice(2))
