#!/usr/bin/env node
import process from 'node:process'

/**
 * `confidential-model-router <command> ...`, or `cmr` for short. In a checkout, `npm start` and `npm run
 * serve|admin|verify|release|image` are the same commands.
 */
// On SIGUSR1 Node would open its debugger, through which any program on the machine could read keys and prompts.
process.on('SIGUSR1', () => {})
const { runProgram } = await import('./program.ts').catch(refuseWithoutPackages)
const { Output } = await import('./output.ts')
await runProgram(process.argv.slice(2), new Output(process.stdout, process.stderr))

/** Handles the failed import in a checkout without installed packages: every module but this one needs them. */
function refuseWithoutPackages(error: unknown): never {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'))
    throw error
  console.error('error: the packages of this checkout are not installed: run "npm ci" first')
  process.exit(1)
}
