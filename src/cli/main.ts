#!/usr/bin/env node
import process from 'node:process'

/**
 * `confidential-model-router <command> ...`, or `cmr` for short. In a checkout, `npm start` and `npm run
 * serve|admin|verify|release|image` are the same commands.
 */
// Node would open its debugger, through which every program of the machine could read keys and prompts.
process.on('SIGUSR1', () => {})
const { runProgram } = await import('./program.ts').catch(refuseWithoutPackages)
const { Output } = await import('./output.ts')
await runProgram(process.argv.slice(2), new Output(process.stdout, process.stderr))

/** Everything but this file needs packages, so a checkout in which none is installed gets no further. */
function refuseWithoutPackages(error: unknown): never {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'))
    throw error
  console.error('error: the packages of this checkout are not installed: run "npm ci" first')
  process.exit(1)
}
