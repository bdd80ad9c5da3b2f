/** Whether an address names a user or a password, which an HTTP client sends to whoever answers there. */
export function namesUser({ username, password }: Pick<URL, 'username' | 'password'>): boolean {
  return username !== '' || password !== ''
}
