import { build } from 'esbuild'

/** The text of an ES module for workerd, bundled as the worker itself is. */
export async function bundleForWorkerd(entryPoint: string): Promise<string> {
  const result = await build({
    entryPoints: [entryPoint],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['workerd', 'worker', 'browser', 'import'],
    target: 'es2024',
    external: ['cloudflare:*', 'node:*'],
    logLevel: 'error',
  })
  return result.outputFiles[0]?.text ?? ''
}
