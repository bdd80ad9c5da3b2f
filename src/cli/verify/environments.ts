/** What to expect of a bundle's environment when the caller does not say. */
export function acceptedEnvironments(
  environment: string | undefined,
  allowSimulated: boolean | undefined,
): string[] {
  if (environment !== undefined) return [environment]
  return allowSimulated === true ? ['production', 'local'] : ['production']
}
