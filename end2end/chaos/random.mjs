// Chance that can be repeated: the same seed draws the same. (What the processes make of it is theirs.)

/** Draws of one thread of the story; `fork` gives another thread its own. */
export class Chance {
    #state;

    constructor(seed) {
        this.#state = seed >>> 0;
    }

    fork() {
        return new Chance(Math.floor(this.draw() * 2 ** 32));
    }

    /** From 0 up to 1: mulberry32. */
    draw() {
        this.#state = (this.#state + 0x6d2b79f5) >>> 0;
        let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
        mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    }

    /** A whole number from `from` up to and including `to`. */
    between(from, to) {
        return from + Math.floor(this.draw() * (to - from + 1));
    }

    pick(list) {
        return list[this.between(0, list.length - 1)];
    }
}
