import { compileContracts } from './compile_contracts.ts'

/** The other end of `compileAhead`: what it leaves behind is the cache. */
compileContracts()
