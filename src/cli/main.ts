#!/usr/bin/env node
import { runProgram } from './program.ts'

/**
 * `confidential-model-router <command> ...`, or `cmr` for short. In a checkout, `npm start` and `npm run
 * serve|admin|verify|release|image` are the same commands.
 */
// Node would open its debugger, through which every program of the machine could read keys and prompts.
process.on('SIGUSR1', () => {})
await runProgram(process.argv.slice(2))
