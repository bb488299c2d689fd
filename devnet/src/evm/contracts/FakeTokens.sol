// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// Says Transfer, answers false, moves nothing: the transaction succeeds all the same.
contract FalseReturnToken {
    event Transfer(address indexed from, address indexed to, uint256 value);

    string public name = "Tether USD";
    string public symbol = "USDT";
    uint8 public decimals = 6;
    mapping(address => uint256) public balanceOf;

    function transfer(address to, uint256 value) external returns (bool) {
        emit Transfer(msg.sender, to, value);
        return false;
    }
}

/// Says Transfer and answers true, but moves nothing.
contract SpoofToken {
    event Transfer(address indexed from, address indexed to, uint256 value);

    string public name = "Tether USD";
    string public symbol = "USDT";
    uint8 public decimals = 6;
    mapping(address => uint256) public balanceOf;

    function transfer(address to, uint256 value) external returns (bool) {
        emit Transfer(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        emit Transfer(from, to, value);
        return true;
    }
}

/// Says Transfer of the whole value, delivers `feeBasisPoints` less.
contract FeeOnTransferToken {
    event Transfer(address indexed from, address indexed to, uint256 value);

    string public name = "Fee Token";
    string public symbol = "FEE";
    uint8 public decimals = 6;
    uint256 public immutable feeBasisPoints;
    mapping(address => uint256) public balanceOf;

    constructor(uint256 feeBasisPoints_, uint256 supply) {
        feeBasisPoints = feeBasisPoints_;
        balanceOf[msg.sender] = supply;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value - (value * feeBasisPoints) / 10_000;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}
