/** The accepted environments of a bundle when the caller names none. */
export function acceptedEnvironments(
  environment: string | undefined,
  allowSimulated: boolean | undefined,
): string[] {
  if (environment !== undefined) return [environment]
  return allowSimulated === true ? ['production', 'local'] : ['production']
}
